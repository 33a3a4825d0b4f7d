"""Result types of operations that merge several arguments: CASE, IF, COALESCE, UNION …"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from dataflow.errors import Unsupported
from dataflow.expressions.expression import Call, Expression, Literal, Parameter
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.conversion import Domain, number_type
from dataflow.values.types import (
    BIGINT,
    BLOBS,
    DATES,
    INTEGER_BYTES,
    INTEGERS,
    JSON,
    NULL,
    NUMBERS,
    TEMPORALS,
    Kind,
    SqlType,
    decimal,
    text,
)

_INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 8, Kind.INT: 10, Kind.BIGINT: 19}
_DATE_LENGTHS = {Kind.DATE: 10, Kind.DATETIME: 19, Kind.TIMESTAMP: 19, Kind.TIME: 10}
DECIMAL_DIGITS_MAX = 65
DECIMAL_SCALE_MAX = 30


def integer_digits(source: SqlType, value: object = None) -> int:
    """The most digits before the point a number of this type has; of a literal, those it has."""
    if isinstance(value, int) and source.kind in INTEGERS:
        return len(str(abs(value)))
    if source.kind in INTEGERS:
        return 20 if source.unsigned and source.kind is Kind.BIGINT else _INTEGER_DIGITS[source.kind]
    if source.kind is Kind.DECIMAL:
        return (source.length or 10) - source.scale
    return source.length or 20


def literal_value(expression: Expression) -> object:
    return expression.value if isinstance(expression, Literal) else None


def display_length(source: SqlType) -> int | None:
    """How many characters a value has as text at most; None where it has no useful bound."""
    if source.kind in INTEGERS:
        return max(source.length or 0, _INTEGER_DIGITS[source.kind] + 1)
    if source.kind is Kind.DECIMAL:
        return (source.length or 10) + 2
    if source.kind in _DATE_LENGTHS:
        return _DATE_LENGTHS[source.kind] + (source.scale + 1 if source.scale else 0)
    if source.kind in (Kind.ENUM, Kind.SET):
        lengths = [len(member) for member in source.members]
        return max(lengths, default=0) if source.kind is Kind.ENUM else sum(lengths) + max(len(lengths) - 1, 0)
    match source.kind:
        case Kind.NULL:
            return 0
        case Kind.FLOAT:
            return 12
        case Kind.DOUBLE:
            return 22
        case Kind.YEAR:
            return 4
        case Kind.CHAR | Kind.VARCHAR | Kind.BINARY | Kind.VARBINARY:
            return source.length
        case Kind.BIT:
            return source.length or 1
        case _:
            return None


def merged_length(types: Sequence[SqlType]) -> int | None:
    lengths = [display_length(source) for source in types]
    return None if None in lengths else max((length for length in lengths if length is not None), default=0)


def merged_number(arguments: Sequence[Expression]) -> SqlType:
    """The type that holds any of several numbers."""
    types = [number_type(argument.type) for argument in arguments]
    kinds = {source.kind for source in types}
    if Kind.DOUBLE in kinds or Kind.FLOAT in kinds:
        if kinds == {Kind.FLOAT}:
            return types[0]
        scales = {source.scale for source in types if source.kind in (Kind.DOUBLE, Kind.FLOAT)}
        return SqlType(Kind.DOUBLE, scale=-1 if len(scales) > 1 or -1 in scales else max(source.scale for source in types))
    whole = max(integer_digits(source, literal_value(a)) for source, a in zip(types, arguments))
    if Kind.DECIMAL in kinds:
        scale = max(source.scale for source in types)
        return decimal(min(whole + scale, DECIMAL_DIGITS_MAX), scale, all(source.unsigned for source in types))
    signs = {source.unsigned for source in types}
    widest = max(kinds, key=INTEGER_BYTES.__getitem__)
    if len(signs) == 1:
        return SqlType(widest, unsigned=types[0].unsigned, length=max(source.length or 0 for source in types) or None)
    widest_unsigned = max(INTEGER_BYTES[source.kind] for source in types if source.unsigned)
    if widest_unsigned < INTEGER_BYTES[widest]:
        return SqlType(widest)
    return BIGINT if widest_unsigned < 8 else decimal(20, 0)


def merged_type(arguments: Sequence[Expression], operation: str = "case") -> SqlType:
    """The type of an expression that returns one of `arguments`."""
    known = [argument for argument in arguments if argument.type.kind is not Kind.NULL]
    if not known:
        return NULL
    types = [argument.type for argument in known]
    kinds = {source.kind for source in types}
    if len(set(types)) == 1 and not kinds & {Kind.ENUM, Kind.SET}:
        if kinds & {Kind.CHAR, Kind.VARCHAR}:
            return text(types[0].length, merged_collation(tuple(known), operation))
        return types[0]
    if kinds <= {Kind.BIT}:
        return max(types, key=lambda source: source.length or 1)
    if kinds <= NUMBERS:
        return merged_number(known)
    if kinds <= DATES:
        scale = max(source.scale for source in types)
        return SqlType(Kind.DATETIME if len(kinds) > 1 else next(iter(kinds)), scale=scale)
    if kinds == {Kind.TIME}:
        return SqlType(Kind.TIME, scale=max(source.scale for source in types))
    if kinds <= TEMPORALS:
        raise Unsupported("mixing TIME and dates")
    if kinds == {Kind.JSON}:
        return JSON
    if kinds & BLOBS:
        length = merged_length(types)
        return SqlType(Kind.LONGBLOB) if length is None else SqlType(Kind.VARBINARY, length=length)
    return text(merged_length(types), merged_collation(tuple(known), operation))


def domain_of(target: SqlType) -> Domain:
    """The domain whose values are those of `target`."""
    if target.kind in INTEGERS or target.kind in (Kind.BIT, Kind.YEAR):
        return Domain.INTEGER
    match target.kind:
        case Kind.DECIMAL:
            return Domain.DECIMAL
        case Kind.FLOAT | Kind.DOUBLE:
            return Domain.REAL
        case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
            return Domain.DATETIME
        case Kind.TIME:
            return Domain.TIME
        case Kind.JSON:
            return Domain.JSON_VALUE
        case Kind.NULL:
            return Domain.ANY
        case kind if kind in BLOBS:
            return Domain.BYTES
        case _:
            return Domain.TEXT


_EXACT_DECIMALS = frozenset({"+", "-", "signed -", "*", "%", "mod", "negate", "cast", "sum", "abs"})


def is_unsettled(expression: Expression) -> bool:
    """Whether a DECIMAL may have other digits than its type."""
    match expression:
        case Call(function="cast" | "unsettled"):
            return False
        case Call(function=function) if function not in _EXACT_DECIMALS:
            return True
        case Call():
            digits = [argument.type.scale for argument in expression.arguments]
            exceed = sum(digits) if expression.function == "*" else max(digits)
            return exceed > expression.type.scale or any(map(is_unsettled, expression.arguments))
        case Literal(value=value, type=type_):
            return isinstance(value, Decimal) and value.as_tuple().exponent != -type_.scale
        case Parameter():
            return True
        case _:
            return False
