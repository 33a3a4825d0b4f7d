"""Many rows as packets of the text protocol, made a column at a time of entries of shared memory.

An entry has its texts behind their lengths already, almost as the protocol wants them, and its
numbers in words of their own. So the packets are made inside the copied entries: lengths and
digits are written where they are to be read, and one call then puts the pieces of all rows,
which lie anywhere in the copy, one after the other.

Invariant: the bytes are those of `results.text_encoder`, or there are none: for columns of other
types than integers and texts, and rows with a text that is too long, the caller goes row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.execution.instant import Cell
from backend.shared_memory.columns import Entries
from backend.shared_memory.gathering import spans, taken
from dataflow.types import BLOBS, INTEGERS, STRINGS, SqlType

Array = np.ndarray[Any, Any]

TEXT_BYTES_MAX = 250
"""The length of a longer one takes more than the one byte that there is room for."""
NULL = 0xFB
HEADER_BYTES = 4

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
_BEGINS_AT, _HALF, _SEQUENCE = np.array(0xFFFFFFFF), np.array(32), np.array(24)
_TEXT = pa.large_string()
_NOTHING = pa.scalar("", _TEXT)


class RowBatches:
    """The rows of a view of these types, of which `cells` are sent.

    Each cell is a piece. A row's header is in the second half of its word of NULLs; where the first cell is a
    number, it is in the word after that, and is one piece with the header.
    """

    def __init__(self, cells: Sequence[Cell], types: Sequence[SqlType]) -> None:
        places = np.array([cell.place for cell in cells])
        self._places = places[:, None]
        numbers = [number for number, cell in enumerate(cells) if types[cell.place].kind in INTEGERS]
        self._numbers = np.array(numbers, int)
        self._texts = np.setdiff1d(np.arange(len(cells)), self._numbers)
        self._unsigned = [types[cells[number].place].unsigned for number in numbers]
        self._instead = np.array([cells[number].number or 0 for number in numbers], np.int64)[:, None]
        self._has_null = np.array([cells[number].number is None for number in numbers], bool)[:, None]
        self._number_places, self._text_places = places[self._numbers], places[self._texts]
        self._targets = self._number_places.copy()
        self._begins_with_number = numbers[:1] == [0]
        if self._begins_with_number:
            self._targets[0] = len(types) + 1

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
        nulls = columns[width]
        null = (nulls >> self._places & _ONE).astype(bool) if np.count_nonzero(nulls) else None
        starts = entries.places - 8 * (width + 2)
        numbers = columns[self._number_places]
        if null is not None:
            np.copyto(numbers, self._instead, where=null[self._numbers])
        # Negative ones are large as well, if they are taken for unsigned.
        largest = int(numbers.view(np.uint64).max()) if numbers.size else 0
        is_one = self._begins_with_number and largest < WORD_MAX
        offsets = spans(count * (len(self._places) + (not is_one)))
        pieces = offsets[1:-1].reshape(count, -1, 2).T
        cells = pieces if is_one else pieces[:, 1:]
        lengths = self._add_texts(entries, starts, null, cells)
        if lengths is None:
            return None
        no_number = None if null is None else null[self._numbers] & self._has_null
        others: list[Array] = []
        if largest >= WORD_MAX:
            others = self._add_large(words, numbers, starts, no_number, cells, lengths)
        elif numbers.size:
            lengths += self._add_numbers(columns, numbers, largest, starts, no_number, cells)
        header = starts + (8 * width + HEADER_BYTES)
        pieces[0, 0] = header
        if not is_one:
            pieces[1, 0] = header + _HEADER
        headers = (np.arange(first, first + count) & _BYTE) << _SEQUENCE | lengths
        columns[width] = headers << _HALF
        source = np.concatenate([words.view(np.uint8).reshape(-1), *others]) if others else words
        return taken(pa.py_buffer(source), offsets, pa.large_binary()).buffers()[2]

    def _add_texts(self, entries: Entries, starts: Array, null: Array | None, cells: Array) -> Array | None:
        """How long they are in each row; None if one is too long."""
        words, rows_at = entries.words, entries.places
        if not len(self._texts):
            return np.zeros(len(words), np.int64)
        places = words.T[self._text_places]
        begins, ends = (places & _BEGINS_AT) + rows_at, (places >> _HALF) + rows_at
        lengths = ends - begins
        if lengths.max() > TEXT_BYTES_MAX:
            return None
        begins -= _ONE  # where an encoded row has the length, or what tells it
        if null is not None:
            absent = null[self._texts]
            if np.count_nonzero(absent):
                cell = starts + 8 * self._text_places[:, None]
                np.copyto(begins, cell, where=absent)
                np.copyto(ends, cell + _ONE, where=absent)
                lengths[absent] = NULL
        words.view(np.uint8).reshape(-1)[begins] = lengths
        cells[0, self._texts], cells[1, self._texts] = begins, ends
        return np.add.reduce(ends - begins)  # type: ignore[no-any-return]

    def _add_numbers(
        self, columns: Array, numbers: Array, largest: int, starts: Array, null: Array | None, cells: Array
    ) -> Array:
        """How long they are in each row."""
        if largest < SMALL_MAX:
            made = _SMALL[numbers]
        else:
            upper = numbers // _THOUSAND
            lower = numbers - upper * _THOUSAND
            made = _UPPER[upper] | _LOWER[lower] << _SHIFTS[upper]
            np.copyto(made, _SMALL[lower], where=upper == 0)
        lengths = (made & _BYTE) + _ONE
        if null is not None:
            made[null], lengths[null] = NULL, 1
        columns[self._targets] = made
        begins = starts + 8 * self._targets[:, None]
        cells[0, self._numbers], cells[1, self._numbers] = begins, begins + lengths
        return np.add.reduce(lengths)  # type: ignore[no-any-return]

    def _add_large(
        self, words: Array, numbers: Array, starts: Array, null: Array | None, cells: Array, row_lengths: Array
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
            begins, ends = places[:-1], places[1:]
            if null is not None:
                absent = null[number]
                words[absent, place] = NULL
                begins = np.where(absent, starts + 8 * place, begins)
                ends = np.where(absent, begins + 1, ends)
            cells[0, self._numbers[number]], cells[1, self._numbers[number]] = begins, ends
            row_lengths += ends - begins
            sources.append(np.frombuffer(data, np.uint8))
            at += len(sources[-1])
        return sources


def row_batches(
    cells: Sequence[Cell], node_types: Sequence[SqlType], types: Sequence[SqlType], codec: str
) -> RowBatches | None:
    """How rows that are these cells of a view go out as text; None if it has to be done row by row.

    `types` are those of the columns as they are sent, in `codec`.
    """
    if len({cell.place for cell in cells}) < len(cells):
        return None
    for cell, sent in zip(cells, types):
        kinds = (node_types[cell.place].kind, sent.kind)
        is_number = all(kind in INTEGERS for kind in kinds) and not sent.zerofill
        is_text = all(kind in STRINGS for kind in kinds) and codec == "utf-8"
        if not is_number and not is_text and not all(kind in BLOBS for kind in kinds):
            return None
    return RowBatches(cells, node_types)
