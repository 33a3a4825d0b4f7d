"""Types of parameter values as short codes, which are quick to make, hash and compare.

| code         | value                                                             |
|--------------|-------------------------------------------------------------------|
| i, u         | int, within BIGINT or above it                                    |
| s8, s14, s32 | str of less than 2^8, 2^14 or 2^32 characters                     |
| dP,S         | Decimal with up to P digits, S of them after the point            |
| f, b, x      | float, bytes, bytes written as digits (0xFF)                      |
| n            | None, or a value that only goes into a column, by its Python type |
| date, datetime:N, timestamp:N, time:N | packed values, as the binary protocol brings them |

Codes are coarse on purpose: each combination of them has a plan of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from controller.sql.expressions.constants import decimal_type, digits_type
from controller.sql.text.lexer import Digits
from controller.sql.text.reading import Reading
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, NULL, Kind, SqlType, Value, text

_BIGINT_MIN, _BIGINT_MAX = -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF
_TEXT_LENGTHS = {"s8": 255, "s14": 16383, "s32": None}
_PRECISIONS = (9, 18, 38, 65)
FEW = 8


def code_of(value: Value) -> str:
    """The code of a value that is not a date or time."""
    if value is None:
        return "n"
    if isinstance(value, int):
        return "i" if _BIGINT_MIN <= value <= _BIGINT_MAX else "u"
    if isinstance(value, str):
        return "s8" if len(value) < 256 else "s14" if len(value) < 16384 else "s32"
    if isinstance(value, Decimal):
        found = decimal_type(value)
        digits = found.length or 0
        return f"d{next((each for each in _PRECISIONS if digits <= each), digits)},{found.scale}"
    return "f" if isinstance(value, float) else "x" if type(value) is Digits else "b"


def type_of(code: str, collation: str) -> SqlType:
    match code[0]:
        case "i":
            return BIGINT
        case "u":
            return BIGINT_UNSIGNED
        case "s":
            return text(_TEXT_LENGTHS[code], collation)
        case "f":
            return DOUBLE
        case "b":
            return SqlType(Kind.LONGBLOB)
        case "x":
            return digits_type()
        case "n":
            return NULL
        case "d" if code[1].isdigit():
            precision, _, scale = code[1:].partition(",")
            return SqlType(Kind.DECIMAL, length=int(precision), scale=int(scale))
    name, _, digits = code.partition(":")
    return SqlType(Kind(name), scale=int(digits or 0))


def plain_values(values: Sequence[Value], codes: Sequence[str]) -> Sequence[Value]:
    """Values as they are computed with: how bytes were written is told by their code."""
    if "x" not in codes:
        return values
    return [bytes(value) if type(value) is Digits else value for value in values]


def codes_of(reading: Reading) -> tuple[str, ...] | None:
    """One code for each parameter of the template.

    None if the rows of a batch have values in one place that no one type has; such a
    statement has to be planned row by row.
    """
    values = reading.values
    template = reading.template
    if reading.are_bigint:
        return ("i",) * template.parameter_count
    if template.batch is None:
        if len(values) > FEW and set(map(type, values)) == {int} and _are_bigint(values):
            return ("i",) * len(values)
        return tuple([code_of(value) for value in values])
    start, width = template.batch
    end = len(values) - (template.parameter_count - start - width)
    codes = [code_of(value) for value in values[:start]]
    for position in range(start, start + width):
        column = values[position:end:width]
        code = _stored_code(column) if template.batch_is_plain else _common_code(column)
        if code is None:
            return None
        codes.append(code)
    return (*codes, *[code_of(value) for value in values[end:]])


def _stored_code(column: Sequence[Value]) -> str | None:
    """For values that only go into a column: one code, whatever they are."""
    kinds = set(map(type, column))
    present = column
    if type(None) in kinds:
        kinds.discard(type(None))
        present = [value for value in column if value is not None]
    if kinds == {int}:
        return "i" if _are_bigint(present) else "n"
    if kinds == {str}:
        return "s14" if max(map(len, present)) < 16384 else "n"  # type: ignore[arg-type]
    if Digits in kinds:
        return "x" if kinds == {Digits} else None
    return "n"


def _are_bigint(numbers: Sequence[Value]) -> bool:
    return min(numbers) >= _BIGINT_MIN and max(numbers) <= _BIGINT_MAX  # type: ignore[type-var, operator]


def _common_code(column: Sequence[Value]) -> str | None:
    kinds = {code_of(value) for value in column}
    if len(kinds) > 1:
        kinds.discard("n")
    return kinds.pop() if len(kinds) == 1 else None
