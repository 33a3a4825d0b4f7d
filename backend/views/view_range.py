"""A part of a key's rows in an ordered view: two bounds, the end to start from, and a number of rows.

Bounds are keys of the first columns of the view's order, as `dataflow.values.ordering` has them: a
text stands as the bytes by which its collation compares it. They travel as msgpack, which
the other side decodes knowing the types of those columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from dataflow.values.comparison import order_key
from dataflow.values.ordering import Bound
from dataflow.values.types import BLOBS, STRINGS, Kind, SqlType

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Range:
    """`limit` counts from the low end, or from the high end if `descending`."""

    low: Bound | None = None
    high: Bound | None = None
    limit: int | None = None
    descending: bool = False

    def encoded(self) -> EncodedRange:
        return EncodedRange(_encode((self.low, self.high)), self.limit, self.descending)

    @property
    def is_empty(self) -> bool:
        """Whether no row can be in it, whatever the view has."""
        if self.limit == 0:
            return True
        if self.low is None or self.high is None or None in self.low[0] or None in self.high[0]:
            return False
        return len(self.low[0]) == len(self.high[0]) and self.low >= self.high


@dataclass(frozen=True, slots=True)
class EncodedRange:
    """As it travels."""

    bounds: bytes
    limit: int | None
    descending: bool


class RangeDecoder:
    """Decodes ranges of a view whose order has columns of these types."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._parts = [msgspec.msgpack.Decoder(key_type(each)).decode for each in types]

    def decode(self, encoded: EncodedRange) -> Range:
        low, high = _decode(encoded.bounds)
        return Range(self._bound(low), self._bound(high), encoded.limit, encoded.descending)

    def _bound(self, encoded: _Encoded | None) -> Bound | None:
        if encoded is None:
            return None
        return tuple([decode(part) for decode, part in zip(self._parts, encoded[0])]), encoded[1]


_Encoded = tuple[list[msgspec.Raw], bool]
_decode = msgspec.msgpack.Decoder(tuple[_Encoded | None, _Encoded | None]).decode


def key_type(kind: SqlType) -> Any:
    """What a key of the order over such a column is decoded as."""
    if kind.kind in (Kind.ENUM, Kind.SET):
        return int | None
    if kind.kind in STRINGS:
        return str | None if order_key(kind) is None else bytes | None
    return bytes | None if kind.kind in BLOBS else int | float | Decimal | None
