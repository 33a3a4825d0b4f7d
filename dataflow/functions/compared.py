"""A text given for a column of another kind, as the value that it is compared as.

MySQL compares integers with a text that is one as integers, of whatever size, and with any other
text as DOUBLEs do. Dates are compared with the date that a text says, and a YEAR with the year that a
constant of two digits says. Made explicit, the column
itself stays as it is, so that an index, or the key of a view, finds the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter, columns_of
from dataflow.functions.registry import Fragment, call, special
from dataflow.values.comparison import Basis, comparand
from dataflow.values.conversion import Domain, conversion
from dataflow.values.numerals import INT64_MIN, UINT64_MAX
from dataflow.values.types import BIGINT, INTEGERS, TEXTS, Kind, SqlType

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_DIGITS_MAX = 15
"""Decimals of so many digits are equal as DOUBLEs only if they are equal."""
_DECIMAL = SqlType(Kind.DECIMAL, 65, 30)
_DATETIME = SqlType(Kind.DATETIME, scale=6)


def as_compared(operator: str, operands: list[Expression]) -> list[Expression]:
    """The operands, with texts that are parameters made what a column among them is compared with."""
    column = next((each for each in operands if isinstance(each, Column)), None)
    target = None if column is None else _target(column.type, operator)
    if target is None or (operator == "in" and column is not operands[0]):
        return operands
    if target.kind is Kind.YEAR:
        moments = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)
        found = [_made(each, target) if _is_constant(each) else each for each in operands]
        return [call("year", each) if each.type.kind in moments and not columns_of(each) else each for each in found]
    return [_made(each, target) if isinstance(each, Parameter) and each.type.kind in TEXTS else each for each in operands]


_BEYOND = Decimal(1).scaleb(65)
_SHORT_YEAR = re.compile(r"\s*[0-9]{1,2}\s*")


def _is_constant(each: Expression) -> bool:
    return isinstance(each, Parameter | Literal) and each.type.kind in TEXTS | INTEGERS


def _target(column: SqlType, operator: str) -> SqlType | None:
    if column.kind in INTEGERS:
        return BIGINT
    if column.kind is Kind.YEAR:
        return column
    if operator not in ("=", "in"):
        return None
    if column.kind is Kind.DECIMAL and (column.length or 10) <= _DIGITS_MAX:
        return _DECIMAL
    return _DATETIME if column.kind in (Kind.DATE, Kind.DATETIME) else None


def _made(value: Expression, target: SqlType) -> Call:
    return call("as compared", value, Literal(None, target))


@special("as compared", least=2, most=2, result=lambda arguments: arguments[1].type)
def emit_compared(emitter: Emitter, node: Call) -> Fragment:
    """Beside integers, too, what is no integer stays what it is."""
    value = node.arguments[0]
    if node.type.kind is Kind.YEAR:
        number = conversion(value.type, Domain.NUMBER).function
        return emitter.convert(value, Domain.ANY, lambda given: _year(given, given if number is None else number(given)), is_compared=True)
    if node.type.kind is Kind.DATETIME:
        return comparand(emitter, value, Basis.DATETIME, "")
    return emitter.convert(value, Domain.ANY, _number(value.type, node.type.kind is Kind.DECIMAL), is_compared=True)


def _year(given: object, number: float) -> int | float | Decimal:
    """A constant of one or two digits is a year of 1970 to 2069; 0 is one only as a text, which '0000' and 'x' are not."""
    whole = int(number)
    is_short = _SHORT_YEAR.fullmatch(given) is not None if isinstance(given, str) else whole != 0
    if whole != number or not 0 <= whole <= 99 or not is_short:
        return whole if whole == number else Decimal(repr(number))
    return whole + (1900 if whole >= 70 else 2000)


@cache
def _number(source: SqlType, is_decimal: bool) -> Callable[[str], int | Decimal]:
    to_real = conversion(source, Domain.REAL).function
    assert to_real is not None

    def number(value: str) -> int | Decimal:
        found: int | Decimal
        if _INTEGER.fullmatch(value):
            found = int(value)
        else:
            real = float(to_real(value))
            found = int(real) if real.is_integer() else Decimal(repr(real))
        if INT64_MIN <= found <= UINT64_MAX and not is_decimal:
            return found
        # Beyond what any column holds it does not matter how far.
        return max(-_BEYOND, min(Decimal(found), _BEYOND))

    return number
