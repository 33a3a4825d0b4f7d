"""The rows of one key of an ordered view in shared memory: a directory and blocks.

A block is some neighbouring rows; the directory says which blocks there are, and between which
keys of the order each of them is. They are entries like any other, named by the key's name and
the number of the block. Rows that come and go change one block; the directory only changes when
blocks do, and has a version, so that a reader need not decode it again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from backend.shared_memory.shared_key import SharedKey
from backend.views.view_range import Range, key_type
from dataflow.expressions.expression import Column
from dataflow.plan.node import Columns, Order
from dataflow.state.sorted_rows import entry_function
from dataflow.values.ordering import range_bound
from dataflow.values.types import Row, SqlType

DIRECTORY = -1
VERSION_BYTES = 8
DIRECTORIES_MAX = 64
BLOCKS_MAX, BLOCK_BYTES_MAX = 256, 1 << 16
"""So many blocks are kept as rows, none that is larger."""

_encode = msgspec.msgpack.Encoder().encode
_decode_name = msgspec.msgpack.Decoder(tuple[int | bytes, int]).decode

Look = Callable[[bytes], bytes | None]


def entry_name(key: SharedKey, number: int) -> bytes:
    """What an entry of the key is called: that of a block, or the DIRECTORY."""
    return _encode((key, number))


def key_of_entry(name: bytes) -> SharedKey:
    return _decode_name(name)[0]


def directory(version: int, numbers: Sequence[int], starts: Sequence[Sequence[tuple[bool, Any]]]) -> bytes:
    """`starts` are the keys at which each block but the first begins, each with whether it is not NULL."""
    keys = [[key if known else None for known, key in start] for start in starts]
    return version.to_bytes(VERSION_BYTES, "big") + _encode((numbers, keys))


class RangeReader:
    """Reads ranges of a view with these types and order out of its entries."""

    def __init__(self, types: Sequence[SqlType], order: Columns, decode: Callable[[bytes], list[Row]]) -> None:
        self._decode = decode
        self._entry_of = entry_function(Order(Column(each, types[each])) for each in order)
        keys: Any = tuple[*(key_type(types[each]) for each in order)]  # type: ignore[misc]
        self._decode_directory = msgspec.msgpack.Decoder(tuple[list[int], list[keys]]).decode
        self._directories: dict[SharedKey, tuple[bytes, list[int], list[Any]]] = {}
        self._blocks: dict[bytes, list[Row]] = {}

    def read(self, look: Look, key: SharedKey, part: Range) -> list[Row] | None:
        """The key's rows in the range; None if the key is not here."""
        found = look(entry_name(key, DIRECTORY))
        if found is None:
            return None
        numbers, starts = self._directory(key, found)
        low, high = range_bound(part.low), range_bound(part.high)
        first = 0 if low is None else bisect_left(starts, low)
        last = len(starts) if high is None else bisect_left(starts, high)
        places = range(first, last + 1)
        rows: list[Row] = []
        for place in reversed(places) if part.descending else places:
            payload = look(entry_name(key, numbers[place]))
            if payload is None:
                return None
            block = self._blocks.get(payload) or self._block(payload)
            start = bisect_left(block, low, key=self._entry_of) if place == first and low is not None else 0
            stop = bisect_left(block, high, key=self._entry_of) if place == last and high is not None else len(block)
            chosen = block[start:stop]
            if part.descending:
                chosen.reverse()
            rows += chosen
            if part.limit is not None and len(rows) >= part.limit:
                return rows[: part.limit]
        return rows

    def _block(self, payload: bytes) -> list[Row]:
        """Its rows, not to be changed: they are kept, as long as there are few."""
        found = self._decode(payload)
        if len(payload) <= BLOCK_BYTES_MAX:
            if len(self._blocks) >= BLOCKS_MAX:
                self._blocks.clear()
            self._blocks[payload] = found
        return found

    def _directory(self, key: SharedKey, payload: bytes) -> tuple[list[int], list[Any]]:
        version = payload[:VERSION_BYTES]
        known = self._directories.get(key)
        if known is None or known[0] != version:
            numbers, starts = self._decode_directory(payload[VERSION_BYTES:])
            keys = [tuple([(False, 0) if part is None else (True, part) for part in start]) for start in starts]
            if len(self._directories) >= DIRECTORIES_MAX:
                self._directories.clear()
            known = self._directories[key] = (version, numbers, keys)
        return known[1], known[2]
