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
from collections.abc import Sequence
from typing import Any

from dataflow.types import BLOBS, REALS, STRINGS, Kind, Row, SqlType

TAIL_BYTES = 16
COLUMNS_MAX = 63
NO_CELLS = 0xFFFFFFFF

_TAIL = struct.Struct("<QII")


class EntryLayout:
    """How rows with columns of these types are laid out; `width` is the number of cells."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self.width = len(types) if len(types) <= COLUMNS_MAX else 0
        self.codes = "".join(map(cell_code, types[: self.width]))
        self._cells = struct.Struct("<" + self.codes.replace("s", "Q"))
        self._texts = [place for place, code in enumerate(self.codes) if code == "s"]
        self._zeros = [0.0 if code == "d" else 0 for code in self.codes]

    def head(self, rows: Sequence[Row], payload: bytes, key_length: int) -> bytes:
        """What stands before the rows, whose encoding is `payload`."""
        if len(rows) != 1:
            return _TAIL.pack(0, len(rows), key_length)
        [row] = rows
        try:
            if not self.width:
                raise ValueError
            nulls, cells = 0, list[Any](self._zeros)
            spans = _spans(payload, len(row)) if self._texts else ()
            for place, value in enumerate(row):
                if value is None:
                    nulls |= 1 << place
                else:
                    cells[place] = spans[place] if self.codes[place] == "s" else value
            return self._cells.pack(*cells) + _TAIL.pack(nulls, 1, key_length)
        except (ValueError, struct.error):
            return _TAIL.pack(0, NO_CELLS, key_length)


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


def key_of(memory: Any, location: int, length: int) -> bytes:
    _, _, key_length = _TAIL.unpack_from(memory, location - TAIL_BYTES)
    start = location + length
    found: bytes = memory[start : start + key_length]
    return found


# --- where the texts of an encoded row are

_SIZES = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
_SIZES |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_SIZES |= dict.fromkeys((*range(0x80), *range(0xE0, 0x100)), 1)
_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _spans(payload: bytes, columns: int) -> list[int]:
    """For each value of the only row: end << 32 | start if it is text, 0 if it is a number."""
    position = 2 if columns < 16 else 4  # after the heads of the list and of the row
    spans = []
    for _ in range(columns):
        lead = payload[position]
        size = _SIZES.get(lead)
        if size is not None:
            spans.append(0)
            position += size
            continue
        if 0xA0 <= lead <= 0xBF:
            start, length = position + 1, lead & 0x1F
        else:
            start = position + 1 + _LENGTH_BYTES[lead]
            length = int.from_bytes(payload[position + 1 : start], "big")
        position = start + length
        spans.append(position << 32 | start)
    return spans
