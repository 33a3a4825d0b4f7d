"""An entry: a key and its rows, as the bytes of one block.

    cells      8 bytes for each column, if there is exactly one row
    nulls      a bit for each column
    row count, length of the key
    rows       as they travel: a msgpack list of tuples      ← the entry's location
    key        its encoded name, if names are not integers

The cells let numpy take a column out of thousands of entries at once: a number stands in its
cell; of a text or DECIMAL the cell has where it begins and ends, counted from the rows. A
row that does not fit this (too many columns, a number of more than 64 bits) has no cells, and
says so by a row count that no list of rows has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from backend.shared_memory.segment import LENGTH_BITS, LENGTH_MASK
from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, Row, SqlType

TAIL_BYTES = 16
COLUMNS_MAX = 63
NO_CELLS = 0xFFFFFFFF

Array = np.ndarray[Any, Any]
_TAIL = struct.Struct("<QII")


class EntryLayout:
    """How rows with columns of these types are laid out; `width` is the number of cells."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self.width = len(types) if len(types) <= COLUMNS_MAX else 0
        self.codes = "".join(map(cell_code, types[: self.width]))
        self._head = _compiled_head(self.codes) if self.width else _no_cells

    def head(self, rows: Sequence[Row], payload: bytes, key_length: int) -> bytes:
        """What stands before the rows, whose encoding is `payload`."""
        if len(rows) != 1:
            return _TAIL.pack(0, len(rows), key_length)
        try:
            return self._head(rows[0], payload, key_length)
        except (ValueError, KeyError, struct.error):
            return _TAIL.pack(0, NO_CELLS, key_length)

    def heads(self, rows: Sequence[Sequence[Row]], payloads: Sequence[bytes]) -> list[bytes]:
        """As `head`, of many keys that are numbers."""
        head = self._head
        try:
            return [head(some[0], payload, 0) for some, payload in zip(rows, payloads) if len(some) == 1 or _fail()]
        except (ValueError, KeyError, struct.error):
            return [self.head(some, payload, 0) for some, payload in zip(rows, payloads)]


def _fail() -> bool:
    raise ValueError


def cell_code(kind: SqlType) -> str:
    """What a cell of this type has: q or Q an integer, d a real, s the place of a text."""
    if kind.kind in STRINGS | BLOBS | {Kind.DECIMAL, Kind.NULL}:
        return "s"
    if kind.kind in REALS:
        return "d"
    return "Q" if kind.unsigned else "q"


def entry_extent(memory: Any, width: int, location: int, length: int) -> tuple[int, int]:
    """(start, size) of the entry whose rows are at `location`."""
    _, count, key_length = _TAIL.unpack_from(memory, location - TAIL_BYTES)
    head = TAIL_BYTES + 8 * width if count == 1 else TAIL_BYTES
    return location - head, head + length + key_length


def entry_extents(words: Array, width: int, locations: Array) -> tuple[Array, Array]:
    """(starts, sizes) of entries whose keys are numbers, by their locations in an index; `words` are those of the file."""
    rows = (locations >> np.uint64(LENGTH_BITS) << np.uint64(3)).view(np.int64)
    heads = np.where(words[(rows >> 2) - 2] == 1, TAIL_BYTES + 8 * width, TAIL_BYTES)
    return rows - heads, heads + (locations & np.uint64(LENGTH_MASK)).view(np.int64)


def key_of(memory: Any, location: int, length: int) -> bytes:
    _, _, key_length = _TAIL.unpack_from(memory, location - TAIL_BYTES)
    start = location + length
    found: bytes = memory[start : start + key_length]
    return found


# --- cells, and where the texts of an encoded row are

_SIZES = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
_SIZES |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_SIZES |= dict.fromkeys((*range(0x80), *range(0xE0, 0x100)), 1)
"""Of encoded numbers, by their first byte."""
_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}

Head = Callable[[Row, bytes, int], bytes]


def _no_cells(row: Row, payload: bytes, key_length: int) -> bytes:
    raise ValueError


def _compiled_head(codes: str) -> Head:
    """What packs the cells of the only row, whose encoding it goes through as far as the last text."""
    names = [f"v{place}" for place in range(len(codes))]
    last_text = codes.rfind("s")
    lines = ["def head(row, payload, key_length):", f"    {', '.join(names)}, = row", "    nulls = 0"]
    lines.append(f"    at = {2 if len(codes) < 16 else 4}")  # after the heads of the list and of the row
    for place, (name, code) in enumerate(zip(names, codes)):
        zero = "0.0" if code == "d" else "0"
        if code == "s":
            lines += [
                f"    if {name} is not None:",
                "        start, length = at + 1, payload[at] - 0xA0",
                "        if not 0 <= length < 32:",
                "            start += LENGTH_BYTES[payload[at]]",
                "            length = int.from_bytes(payload[at + 1 : start], 'big')",
                "        at = start + length",
                f"        {name} = at << 32 | start",
                "    else:",
                f"        {name} = 0",
                f"        nulls |= {1 << place}",
                "        at += 1",
            ]
        else:
            lines += [f"    if {name} is None:", f"        {name} = {zero}", f"        nulls |= {1 << place}"]
            if place < last_text:
                lines.append("    at += SIZES[payload[at]]")
    lines.append(f"    return pack({', '.join(names)}, nulls, 1, key_length)")
    pack = struct.Struct("<" + codes.replace("s", "Q") + _TAIL.format[1:]).pack
    scope: dict[str, Any] = {"SIZES": _SIZES, "LENGTH_BYTES": _LENGTH_BYTES, "pack": pack}
    exec("\n".join(lines), scope)
    function: Head = scope["head"]
    return function
