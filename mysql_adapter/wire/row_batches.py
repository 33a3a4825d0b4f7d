"""Many rows as packets, text or binary, made a column at a time of entries of shared memory.

An entry has its texts behind their lengths already, almost as the protocol wants them, and its
numbers in words of their own. So the packets are made inside the copied entries: lengths and
digits are written where they are to be read, and one call then puts the pieces of all rows,
which lie anywhere in the copy, one after the other. Binary numbers are sent as they are.

Invariant: the bytes are those of the encoders in `results`, or there are none: for columns of other
types than integers and texts, and rows with a text that is too long, the caller goes row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.execution.answering.instant import Cell
from backend.shared_memory.columns import Entries
from backend.shared_memory.gathering import spans, taken
from dataflow.values.types import BLOBS, INTEGERS, STRINGS, Kind, SqlType

Array = np.ndarray[Any, Any]

TEXT_BYTES_MAX = 250
"""The length of a longer one takes more than the one byte that there is room for."""
NULL = 0xFB
HEADER_BYTES = 4
BITMAP_BYTES_MAX = 7
"""So many fit a word with the byte before them."""
BINARY_BYTES = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.MEDIUMINT: 4, Kind.INT: 4, Kind.BIGINT: 8}

SMALL_MAX, WORD_MAX = 10_000, 10_000_000
"""Numbers below these fit a word with their length: by one look at a table, or by two."""


def _words(texts: Sequence[bytes]) -> Array:
    return np.array([int.from_bytes(text, "little") for text in texts], np.int64)


_DIGITS = [str(number).encode() for number in range(SMALL_MAX)]
_SMALL = _words([bytes((len(text),)) + text for text in _DIGITS])
# What comes before the last three digits, those digits, and how far they have to be moved.
_UPPER = _words([bytes((len(text) + 3,)) + text for text in _DIGITS])
_LOWER = _words([b"%03d" % number for number in range(1000)])
_SHIFTS = np.array([8 * len(text) + 8 for text in _DIGITS])

# Arrays without dimensions are the quickest constants.
_ONE, _THOUSAND, _BYTE, _HEADER = np.array(1), np.array(1000), np.array(0xFF), np.array(HEADER_BYTES)
_BEGINS_AT, _HALF, _EIGHT = np.array(0xFFFFFFFF), np.array(32), np.array(8)
_BINARY, _TEXT = pa.large_binary(), pa.large_string()
_NOTHING = pa.scalar("", _TEXT)


@lru_cache(maxsize=2)
def _sequences_up_to(count: int) -> Array:
    return (np.arange(count) & 0xFF) << 24


def _sequences(count: int) -> Array:
    """The numbers of so many packets, where a header has them."""
    return _sequences_up_to(max(8192, 1 << count.bit_length()))[:count]


class RowBatches:
    """The rows of a view of these types, of which `cells` are sent.

    Each cell is a piece. A row's header is in the second half of its word of NULLs; where the first cell is a
    number that is sent as text, it is in the word after that, and is one piece with the header. In binary rows, that
    word has the bits of NULLs. `sizes` are how many bytes a binary number of each cell has.
    """

    def __init__(self, cells: Sequence[Cell], types: Sequence[SqlType], sizes: Sequence[int] | None = None) -> None:
        numbers = [number for number, cell in enumerate(cells) if types[cell.place].kind in INTEGERS]
        texts = [number for number in range(len(cells)) if number not in numbers]
        # Numbers first, then texts: `order` says which cell is which.
        self._order = np.array(numbers + texts)
        self._cells = [cells[number] for number in numbers + texts]
        self._count = len(numbers)
        self._width = len(types)
        self._unsigned = [types[cells[number].place].unsigned for number in numbers]
        self._number_places = np.array([cells[number].place for number in numbers], int)
        self._text_places = np.array([cells[number].place for number in texts], int)
        self._sizes = None if sizes is None else np.array([sizes[number] for number in numbers], int)[:, None]
        self._head_bytes = HEADER_BYTES if sizes is None else HEADER_BYTES + 1 + bitmap_bytes(len(cells))
        self._begins_with_number = numbers[:1] == [0] and sizes is None
        targets = self._number_places.copy()
        if self._begins_with_number:
            targets[0] = len(types) + 1
        self._targets, self._target_bytes = targets, 8 * targets[:, None]

    def encoded(self, entries: Entries, first: int) -> Any | None:
        """The packets of all these rows, numbered from `first`, as a buffer; None if it has to be done row by row.

        The entries are used up.
        """
        words, width = entries.words, entries.width
        count = len(words)
        if not count:
            return b""
        # Everything has a line for each column: numpy is slow with lines of few numbers.
        columns = words.T
        nulls = self._nulls(columns[width])
        starts = entries.places - 8 * (width + 2)
        pieces = np.empty((2, len(self._cells), count), np.int64)
        if len(self._text_places) and not self._add_texts(entries, starts, nulls, pieces[:, self._count :]):
            return None
        others: list[Array] = []
        is_one = self._begins_with_number
        if self._sizes is not None:
            self._add_binary(columns, self._sizes, starts, nulls, pieces)
        elif self._count:
            numbers = columns[self._number_places]
            for place, null in nulls.items():
                if place < self._count and (instead := self._cells[place].number) is not None:
                    numbers[place][null] = instead
            # Negative ones are large as well, if they are taken for unsigned.
            largest = int(numbers.view(np.uint64).max())
            if largest < WORD_MAX:
                self._add_numbers(columns, numbers, largest, starts, nulls, pieces)
            else:
                is_one = False
                others = self._add_large(words, numbers, starts, nulls, pieces)
        lengths = np.add.reduce(pieces[1] - pieces[0])
        lengths += self._head_bytes - HEADER_BYTES
        offsets = spans(count * (len(self._cells) + (not is_one)))
        places = offsets[1:-1].reshape(count, -1, 2).T
        (places if is_one else places[:, 1:])[:, self._order] = pieces
        header = starts + (8 * width + HEADER_BYTES)
        places[0, 0] = header
        if not is_one:
            places[1, 0] = header + self._head_bytes
        columns[width] = (_sequences(first + count)[first:] | lengths) << _HALF
        source = np.concatenate([words.view(np.uint8).reshape(-1), *others]) if others else words
        return taken(pa.py_buffer(source), offsets, _BINARY).buffers()[2]

    def _nulls(self, nulls: Array) -> dict[int, Array]:
        """Which rows have NULL, of those cells that have it in some row."""
        some = int(np.bitwise_or.reduce(nulls))
        if not some:
            return {}
        return {
            number: (nulls & 1 << cell.place).astype(bool)
            for number, cell in enumerate(self._cells)
            if some >> cell.place & 1
        }

    def _add_texts(self, entries: Entries, starts: Array, nulls: Mapping[int, Array], pieces: Array) -> bool:
        """False if one is too long."""
        words, rows_at = entries.words, entries.places
        places = words.T[self._text_places]
        begins, ends = pieces
        np.add(places & _BEGINS_AT, rows_at, out=begins)
        np.add(places >> _HALF, rows_at, out=ends)
        lengths = ends - begins
        if lengths.max() > TEXT_BYTES_MAX:
            return False
        begins -= _ONE  # where an encoded row has the length, or what tells it
        for number, null in nulls.items():
            if number >= self._count:
                text = number - self._count
                cell = starts[null] + 8 * self._cells[number].place
                sent = int(self._sizes is None)  # binary rows have it among their bits
                begins[text][null], ends[text][null], lengths[text][null] = cell, cell + sent, NULL
        words.view(np.uint8).reshape(-1)[begins] = lengths
        return True

    def _add_binary(
        self, columns: Array, sizes: Array, starts: Array, nulls: Mapping[int, Array], pieces: Array
    ) -> None:
        """Numbers, and the bits of all that are NULL."""
        begins, ends = pieces[0, : self._count], pieces[1, : self._count]
        np.add(starts, 8 * self._number_places[:, None], out=begins)
        np.add(begins, sizes, out=ends)
        bits = np.zeros(columns.shape[1], np.int64)
        for number, null in nulls.items():
            cell = self._cells[number]
            if cell.number is not None:
                columns[cell.place][null] = cell.number
                continue
            if number < self._count:
                ends[number][null] = begins[number][null]
            bits |= null.astype(np.int64) << int(self._order[number]) + 2
        columns[self._width + 1] = bits << _EIGHT  # behind a byte that is 0

    def _add_numbers(
        self, columns: Array, numbers: Array, largest: int, starts: Array, nulls: Mapping[int, Array], pieces: Array
    ) -> None:
        if largest < SMALL_MAX:
            made = _SMALL[numbers]
        else:
            upper = numbers // _THOUSAND
            lower = numbers - upper * _THOUSAND
            made = _UPPER[upper] | _LOWER[lower] << _SHIFTS[upper]
            np.copyto(made, _SMALL[lower], where=upper == 0)
        lengths = made & _BYTE
        for number, null in nulls.items():
            if number < self._count and self._cells[number].number is None:
                made[number][null], lengths[number][null] = NULL, 0
        columns[self._targets] = made
        begins, ends = pieces[0, : self._count], pieces[1, : self._count]
        np.add(starts, self._target_bytes, out=begins)
        np.add(begins, lengths, out=ends)
        ends += _ONE

    def _add_large(
        self, words: Array, numbers: Array, starts: Array, nulls: Mapping[int, Array], pieces: Array
    ) -> list[Array]:
        """Numbers of any size; their pieces are in what is returned, which has to be put behind the entries."""
        sources: list[Array] = []
        at, count = words.nbytes, len(words)
        for number, place in enumerate(self._number_places):
            kind = np.uint64 if self._unsigned[number] else np.int64
            digits = pc.cast(pa.array(np.ascontiguousarray(numbers[number]).view(kind)), _TEXT)
            lengths = np.diff(np.frombuffer(digits.buffers()[1], np.int64)[: count + 1]).astype(np.uint8)
            buffers = [None, pa.py_buffer(np.arange(count + 1)), pa.py_buffer(lengths)]
            counted = pc.binary_join_element_wise(pa.Array.from_buffers(_TEXT, count, buffers), digits, _NOTHING)
            _, offsets, data = counted.buffers()
            places = np.frombuffer(offsets, np.int64)[: count + 1] + at
            begins, ends = pieces[:, number]
            begins[:], ends[:] = places[:-1], places[1:]
            if number in nulls and self._cells[number].number is None:
                null = nulls[number]
                words[null, place] = NULL
                cell = starts[null] + 8 * place
                begins[null], ends[null] = cell, cell + 1
            sources.append(np.frombuffer(data, np.uint8))
            at += len(sources[-1])
        return sources


def bitmap_bytes(count: int) -> int:
    """What the NULLs of a binary row with so many columns take."""
    return (count + 9) // 8


def row_batches(
    cells: Sequence[Cell], node_types: Sequence[SqlType], types: Sequence[SqlType], codec: str, binary: bool
) -> RowBatches | None:
    """How rows that are these cells of a view go out; None if it has to be done row by row.

    `types` are those of the columns as they are sent, in `codec`.
    """
    if len({cell.place for cell in cells}) < len(cells) or (binary and bitmap_bytes(len(cells)) > BITMAP_BYTES_MAX):
        return None
    for cell, sent in zip(cells, types):
        kinds = (node_types[cell.place].kind, sent.kind)
        is_number = all(kind in INTEGERS for kind in kinds) and (binary or not sent.zerofill)
        is_text = all(kind in STRINGS for kind in kinds) and codec == "utf-8"
        if not is_number and not is_text and not all(kind in BLOBS for kind in kinds):
            return None
    return RowBatches(cells, node_types, [BINARY_BYTES.get(sent.kind, 0) for sent in types] if binary else None)
