"""Values of any kind as keys of a column: one value for all that are equal to it.

Python takes 1, 1.0 and Decimal("1.00") for equal, and so do indexes that are dicts. Encoded
keys need one of them, that of the column's own type; and a value that no row of the column
can have (1.5 of an integer column) has no encoding at all.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, SqlType

INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 64) - 1

_EXACT = Context(prec=200)


class ImpossibleKey(Exception):
    """No row of the column can have the value."""


def key_value(column: SqlType) -> Callable[[Any], Any]:
    """The function that turns numbers into those of the column; other values stay as they are.

    It raises `ImpossibleKey`.
    """
    kind = column.kind
    if kind in STRINGS | BLOBS | {Kind.NULL}:
        return _unchanged
    if kind in REALS:
        return _real
    return _decimal if kind is Kind.DECIMAL else _integer


def _unchanged(value: Any) -> Any:
    return value


def _integer(value: Any) -> int | None:
    if value is None:
        return None
    try:
        whole = int(value)
    except (ValueError, OverflowError):  # not a number, or infinite
        raise ImpossibleKey from None
    if whole != value or not INTEGER_MIN <= whole <= INTEGER_MAX:
        raise ImpossibleKey
    return whole


def _real(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        raise ImpossibleKey from None
    if number != value:
        raise ImpossibleKey
    return number + 0.0  # not -0.0


def _decimal(value: Any) -> Decimal | None:
    if value is None:
        return None
    normal = _EXACT.normalize(Decimal(value))
    if normal != value:
        raise ImpossibleKey
    return normal or abs(normal)
