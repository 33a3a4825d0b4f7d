"""LevelDB's log format, which its logs and its MANIFEST are written in: records, and what is wrong with them.

A file is blocks of 32 KB. A record is one fragment or several; a fragment has a header with its checksum, length and
place in the record, and never crosses a block. LevelDB's own reader passes over some damage in silence (zeros; a length
that reaches beyond the end of the file, as that of a fragment whose writer was killed does): here all of it is a `Fault`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from persistence.files.checksum import masked_checksum

BLOCK_BYTES = 32 << 10
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a file stops making sense. `is_tail`: it may just be what its writer did not live to finish."""

    offset: int
    what: str
    is_tail: bool = False

    def __str__(self) -> str:
        return f"{self.what} at byte {self.offset:,}"


def read_records(data: bytes, checked: bool, start: int = 0) -> Iterator[Record | Fault]:
    """The records from `start` on, where a fragment begins; a fault is the last that comes.

    Unless it is `checked`, checksums are left to LevelDB: only that all records are there in full is made sure of.
    The rest of a record that began before `start` is left out.
    """
    size, at = len(data), start
    parts: list[bytes] = []
    begun = at
    is_rest = start > 0
    while at < size:
        block_end = at - at % BLOCK_BYTES + BLOCK_BYTES
        if block_end - at < _HEADER.size:
            at = block_end
            continue
        if at + _HEADER.size > size:
            break
        begun = begun if parts else at
        checksum, length, kind = _HEADER.unpack_from(data, at)
        body, end = at + _HEADER.size, at + _HEADER.size + length
        if not kind or kind > _LAST:
            yield Fault(begun, "no record", data.count(0, at) == size - at)
            return
        if end > min(block_end, size):
            yield Fault(begun, "a record of impossible length", block_end >= size)
            return
        if checked and masked_checksum(data[at + 6 : end]) != checksum:
            yield Fault(begun, "a wrong checksum")
            return
        at = end
        if is_rest and kind in (_MIDDLE, _LAST):
            continue
        is_rest = False
        if (kind in (_FULL, _FIRST)) == bool(parts):
            yield Fault(begun, "a record in part")
            return
        parts.append(data[body:end])
        if kind in (_FULL, _LAST):
            yield Record(begun, b"".join(parts))
            parts = []
    if parts or at < size:
        yield Fault(begun if parts else at, "a record without its end", True)


def records_after(data: bytes, offset: int) -> Iterator[Record]:
    """What is whole after a fault at `offset`: the next fragment is looked for, byte by byte, then block by block."""
    block = offset - offset % BLOCK_BYTES + BLOCK_BYTES
    starts = [at for at in range(offset + 1, min(block, len(data))) if _is_fragment(data, at)][:1]
    at = 0
    for start in [*starts, *range(block, len(data), BLOCK_BYTES)]:
        if start < at:
            continue
        for found in read_records(data, True, start):
            at = found.offset
            if isinstance(found, Record):
                yield found


def _is_fragment(data: bytes, at: int) -> bool:
    if at + _HEADER.size > len(data):
        return False
    checksum, length, kind = _HEADER.unpack_from(data, at)
    end = at + _HEADER.size + length
    if kind not in (_FULL, _FIRST) or end > min(at - at % BLOCK_BYTES + BLOCK_BYTES, len(data)):
        return False
    return masked_checksum(data[at + 6 : end]) == int(checksum)
