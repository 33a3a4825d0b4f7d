"""The comparison of two values of given types, and keys that group and order values of one type.

MySQL first decides in what domain two operands compare: texts by collation, text with a number
as doubles, anything with a date as dates. `operands` emits both sides as Python values
whose ==, < and hash are MySQL's. NULLs are the caller's business, except in sort keys,
where they come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dataflow.errors import Unsupported
from dataflow.expressions.expression import Expression, Literal
from dataflow.expressions.fragment import Fragment
from dataflow.values import documents
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import collation_key
from dataflow.values.conversion import (
    Domain,
    conversion,
    decode,
    encode,
    member_bits,
    member_index,
    number_of,
)
from dataflow.values.types import (
    BLOBS,
    DATES,
    DEFAULT_COLLATION,
    INTEGERS,
    NUMBERS,
    REALS,
    STRINGS,
    Kind,
    SqlType,
    Value,
)

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Key = Callable[[Any], Any]


class Basis(Enum):
    """In what two operands compare."""

    NULL = "null"
    TEXT = "text"
    BYTES = "bytes"
    EXACT = "exact"
    REAL = "real"
    DATETIME = "datetime"
    TIME = "time"
    JSON = "json"
    DYNAMIC = "dynamic"
    """One side is known at execution only, and it matters."""


def basis(left: SqlType, right: SqlType) -> Basis:
    """What decides the comparison of values of two types."""
    kinds = (left.kind, right.kind)
    if Kind.NULL in kinds:
        return _unknown_basis(left if right.kind is Kind.NULL else right)
    if Kind.JSON in kinds:
        return Basis.JSON
    if left.kind in DATES or right.kind in DATES:
        other = right.kind if left.kind in DATES else left.kind
        if other is Kind.TIME:
            raise Unsupported("comparing a TIME with a date")
        return Basis.EXACT if other is Kind.YEAR else Basis.DATETIME
    if Kind.TIME in kinds:
        return Basis.EXACT if left.kind in NUMBERS or right.kind in NUMBERS else Basis.TIME
    left_text, right_text = _is_text(left), _is_text(right)
    if left_text and right_text:
        return Basis.BYTES if left.kind in BLOBS or right.kind in BLOBS else Basis.TEXT
    if left_text or right_text:
        if (left.kind in (Kind.ENUM, Kind.SET) or right.kind in (Kind.ENUM, Kind.SET)) and not (
            left.kind in REALS or right.kind in REALS
        ):
            return Basis.EXACT
        return Basis.REAL
    return Basis.REAL if left.kind in REALS or right.kind in REALS else Basis.EXACT


def _unknown_basis(known: SqlType) -> Basis:
    if known.kind in NUMBERS:
        return Basis.EXACT
    if known.kind in DATES:
        return Basis.DATETIME
    return Basis.TIME if known.kind is Kind.TIME else Basis.DYNAMIC


def _is_text(source: SqlType) -> bool:
    return source.kind in STRINGS or source.kind in BLOBS


def common_basis(types: Sequence[SqlType]) -> Basis:
    """What decides comparisons among several types at once, as in BETWEEN."""
    bases = {basis(left, right) for left, right in combinations(types, 2)}
    if len(bases) == 1:
        return bases.pop()
    for strongest in (Basis.DYNAMIC, Basis.JSON, Basis.DATETIME, Basis.TIME):
        if strongest in bases:
            return strongest
    return Basis.REAL if Basis.REAL in bases or not bases <= {Basis.TEXT, Basis.BYTES} else Basis.BYTES


_DOMAINS = {
    Basis.EXACT: Domain.NUMBER,
    Basis.REAL: Domain.REAL,
    Basis.DATETIME: Domain.DATETIME,
    Basis.TIME: Domain.TIME,
    Basis.BYTES: Domain.BYTES,
}


def comparand(emitter: Emitter, expression: Expression, chosen: Basis, collation: str) -> Fragment:
    """One side as a value that Python compares as MySQL would, given the basis."""
    if chosen in (Basis.DATETIME, Basis.TIME):
        function = conversion(expression.type, _DOMAINS[chosen]).function
        return emitter.convert(expression, Domain.ANY, function and _or_zero(function, expression.type.kind in NUMBERS), is_compared=True)
    if chosen is Basis.EXACT and expression.type.kind is Kind.DECIMAL:
        return emitter.settled(expression)
    if chosen in _DOMAINS:
        return emitter.convert(expression, _DOMAINS[chosen], is_compared=True)
    if chosen is Basis.JSON:
        return emitter.convert(expression, Domain.JSON_VALUE, documents.order_key)
    assert chosen is Basis.TEXT
    return emitter.convert(expression, Domain.TEXT, None if collation == "utf8mb4_0900_bin" else collation_key(collation))


_NUMBER_MAX = 99_991_231_235_959


@cache
def _or_zero(function: Key, from_number: bool) -> Key:
    """What is no date compares as the zero date; a number beyond all dates, as such."""
    if from_number:
        return lambda value: 1 << 63 if value > _NUMBER_MAX else function(value) or 0
    return lambda value: function(value) or 0


def operands(emitter: Emitter, left: Expression, right: Expression, *, operation: str) -> tuple[Fragment, Fragment]:
    """Both sides as values that Python compares as MySQL would."""
    found = basis(left.type, right.type)
    for side, other, turned in ((left, right, False), (right, left, True)):
        if isinstance(side, Literal) and side.value is None:
            pair = (emitter.emit(side), emitter.emit(other))
            return (pair[1], pair[0]) if turned else pair
    collation = merged_collation((left, right), operation)
    if found is Basis.DYNAMIC:
        return _dynamic(emitter, left, right, collation)
    return comparand(emitter, left, found, collation), comparand(emitter, right, found, collation)


def _dynamic(emitter: Emitter, left: Expression, right: Expression, collation: str) -> tuple[Fragment, Fragment]:
    """Text or an unknown type with an unknown type: each side is a text key or a number, by what the other is."""
    chosen = collation_key(collation)

    def key(value: Value, other: Value) -> Any:
        if value is None or other is None:
            return value
        if isinstance(value, str | bytes) and isinstance(other, str | bytes):
            if isinstance(value, bytes) or isinstance(other, bytes):
                return value if isinstance(value, bytes) else encode(value)
            return chosen(value)
        return float(number_of(value))

    first, second = emitter.emit(left), emitter.emit(right)
    return emitter.apply(key, [first, second], nulls=True), emitter.apply(key, [second, first], nulls=True)


def equality_key(source: SqlType) -> Key | None:
    """A function whose results are equal and hash equally where values of the type are equal.

    None if the values themselves do. NULL is not given to it.
    """
    if source.kind in BLOBS or source.kind in (Kind.ENUM, Kind.SET):
        return None
    if source.kind is Kind.JSON:
        return documents.order_key
    if source.kind in STRINGS:
        name = source.collation or DEFAULT_COLLATION
        return None if name == "utf8mb4_0900_bin" else collation_key(name)
    return None


def group_key(source: SqlType) -> Key | None:
    """As `equality_key`, but it may be given NULL, which equals itself. None if values need no key."""
    key = equality_key(source)
    if key is None:
        return None
    return lambda value: None if value is None else key(value)


def order_key(source: SqlType) -> Key | None:
    """A function whose results are ordered as ORDER BY orders values of the type; None if values are."""
    match source.kind:
        case Kind.ENUM:
            return member_index(source)
        case Kind.SET:
            return member_bits(source)
        case _:
            return equality_key(source)


def extreme_key(source: SqlType) -> Key | None:
    """As `order_key`, for MIN and MAX, which compare ENUM and SET values as texts."""
    if source.kind in (Kind.ENUM, Kind.SET):
        return collation_key(source.collation or DEFAULT_COLLATION)
    return order_key(source)


class Descending:
    """Turns the order of a key around."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


_FIRST = (0,)


def sort_key(source: SqlType, descending: bool = False) -> Key:
    """A key for `sorted`: NULLs first, or last when descending; numbers are turned by their sign."""
    key = order_key(source)
    numeric = source.kind in NUMBERS or source.kind in DATES or source.kind in (Kind.TIME, Kind.ENUM, Kind.SET)
    if not descending:
        if key is None:
            return lambda value: _FIRST if value is None else (1, value)
        return lambda value: _FIRST if value is None else (1, key(value))
    if numeric:
        if key is None:
            return lambda value: (1,) if value is None else (0, -value)
        return lambda value: (1,) if value is None else (0, -key(value))
    if key is None:
        return lambda value: (1,) if value is None else (0, Descending(value))
    return lambda value: (1,) if value is None else (0, Descending(key(value)))


def comparable(value: Value, source: SqlType, target: SqlType) -> Any:
    """`value` of type `source` as the key that `equality_key(target)` gives values of a column.

    What an index lookup needs: None if no value of the column can equal it. What is no date is
    looked up as the zero date, which is what it compares as. Only for operands
    whose comparison compares the column's own keys, not converted column values.
    """
    if value is None:
        return None
    found = basis(target, source)
    domain = _DOMAINS.get(found, Domain.JSON_VALUE if found is Basis.JSON else Domain.TEXT)
    function = conversion(source, domain).function
    converted = value if function is None else function(value)
    if converted is None:
        return 0 if found in (Basis.DATETIME, Basis.TIME) else None
    key = equality_key(target)
    if key is not None:
        return key(decode(converted) if isinstance(converted, bytes) else converted)
    if isinstance(converted, float | Decimal) and (target.kind in INTEGERS or target.kind in DATES):
        return int(converted) if converted == int(converted) else None
    return converted
