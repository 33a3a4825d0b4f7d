"""Types of parameter values as short codes, which are quick to make, hash and compare.

| code         | value                                   |
|--------------|-----------------------------------------|
| i, u         | int, within BIGINT or above it          |
| sN           | str of less than 2^N characters         |
| dP,S         | Decimal with P digits, S after the point|
| f, b, n      | float, bytes, None                      |
| date, datetime:N, timestamp:N, time:N | packed values, as the binary protocol brings them |
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

from controller.sql.template import Reading
from controller.sql.translate import decimal_type
from dataflow.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, NULL, Kind, SqlType, Value, text

_BIGINT_MIN, _BIGINT_MAX = -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF
VARCHAR_LENGTH_MAX = 16383
_EXACT = Context(prec=200)


def code_of(value: Value) -> str:
    """The code of a value that is not a date or time."""
    if value is None:
        return "n"
    if isinstance(value, int):
        return "i" if _BIGINT_MIN <= value <= _BIGINT_MAX else "u"
    if isinstance(value, str):
        return f"s{len(value).bit_length()}"
    if isinstance(value, Decimal):
        found = decimal_type(value)
        return f"d{found.length},{found.scale}"
    return "f" if isinstance(value, float) else "b"


def type_of(code: str, collation: str) -> SqlType:
    match code[0]:
        case "i":
            return BIGINT
        case "u":
            return BIGINT_UNSIGNED
        case "s":
            length = (1 << int(code[1:])) - 1
            return text(length if length <= VARCHAR_LENGTH_MAX else None, collation)
        case "f":
            return DOUBLE
        case "b":
            return SqlType(Kind.LONGBLOB)
        case "n":
            return NULL
        case "d" if code[1].isdigit():
            precision, _, scale = code[1:].partition(",")
            return SqlType(Kind.DECIMAL, length=int(precision), scale=int(scale))
    name, _, digits = code.partition(":")
    return SqlType(Kind(name), scale=int(digits or 0))


def codes_of(reading: Reading) -> tuple[tuple[str, ...] | None, Sequence[Value]]:
    """One code for each parameter of the template, and the values, as those codes have them.

    The codes are None if a column of a batch has values of kinds that no one type has.
    """
    values = reading.values
    batch = reading.template.batch
    if batch is None:
        return tuple([code_of(value) for value in values]), values
    start, width = batch
    end = len(values) - (reading.template.parameter_count - start - width)
    if end - start == width:
        return tuple([code_of(value) for value in values]), values
    codes = [code_of(value) for value in values[:start]]
    changed: list[Value] | None = None
    for position in range(start, start + width):
        column = values[position:end:width]
        code, same = _column_code(column)
        if code is None:
            return None, values
        if same is not column:
            changed = list(values) if changed is None else changed
            changed[position:end:width] = same
        codes.append(code)
    codes += [code_of(value) for value in values[end:]]
    return tuple(codes), values if changed is None else changed


def _column_code(column: Sequence[Value]) -> tuple[str | None, Sequence[Value]]:
    """The code that all values of a column share, and the values in that type."""
    kinds = set(map(type, column))
    kinds.discard(type(None))
    if not kinds:
        return "n", column
    present = column if None not in column else [value for value in column if value is not None]
    if kinds == {str}:
        return f"s{max(map(len, present)).bit_length()}", column  # type: ignore[arg-type]
    if kinds == {int}:
        least, most = min(present), max(present)  # type: ignore[type-var]
        assert isinstance(least, int) and isinstance(most, int)
        if most <= _BIGINT_MAX:
            return "i", column
        return ("u", column) if least >= 0 else (None, column)
    if kinds <= {int, Decimal}:
        return _decimal_column(column)
    if kinds <= {int, Decimal, float}:
        return "f", [None if value is None else float(value) for value in column]
    return (code_of(present[0]), column) if len(kinds) == 1 else (None, column)


def _decimal_column(column: Sequence[Value]) -> tuple[str, Sequence[Value]]:
    """DECIMALs of different digits brought to a type that has them all."""
    numbers = [Decimal(value) if isinstance(value, int | Decimal) else None for value in column]
    found = [decimal_type(number) for number in numbers if number is not None]
    scale = max(each.scale for each in found)
    whole = max((each.length or 0) - each.scale for each in found)
    unit = Decimal(1).scaleb(-scale)
    same = [None if number is None else _EXACT.quantize(number, unit) for number in numbers]
    return f"d{max(whole + scale, 1)},{scale}", same
