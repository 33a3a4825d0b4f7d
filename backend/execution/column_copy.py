"""Rows of one table stored in another a column at a time: what ALTER TABLE copies, where nothing is to be said about any row.

A column whose type stays is never looked at value by value. One that changes is converted once for each distinct value, by the code
that converts it for INSERT. Invariant: either all rows of a batch are written as `alteration` would write them one by one, or nothing is done;
then `alteration` does that, and finds out what is wrong with which row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from backend.execution.evaluation.reading import table_writer
from backend.execution.transaction import Transaction
from backend.execution.writes.bulk_insert import write_columns
from backend.execution.writes.column_values import Array, listed
from backend.execution.writes.columns import WrittenColumn, WrittenColumns
from dataflow.columns.vector import GaveUp, NumberVector, distinct, values_of
from dataflow.errors import MillraceError
from dataflow.schema import Table
from dataflow.values.arrow_values import arrow_type
from dataflow.values.types import BLOBS, INTEGERS, TEMPORALS, TEXTS, Kind, SqlType, Value
from persistence.columnar import ColumnDecoder

ROWS_MIN = 128
KINDS = INTEGERS | TEMPORALS | TEXTS | BLOBS | {Kind.DOUBLE, Kind.DECIMAL}

Convert = Callable[[WrittenColumn, Value, SqlType], Value]
Known: TypeAlias = Array | pa.Array


class ColumnCopy:
    """From `old` to `new`, whose columns come from the `sources` of old ones; `convert` makes a value of such a column one of the other."""

    def __init__(
        self, old: Table, new: Table, columns: WrittenColumns, sources: Sequence[int | None], convert: Convert
    ) -> None:
        self._old = old
        self._new = new
        self._columns = columns
        self._sources = sources
        self._convert = convert
        self._writer = table_writer(new)
        read = sorted({each for each in sources if each is not None})
        self._decimals = [each for each in read if old.columns[each].type.kind is Kind.DECIMAL]
        self._others = [each for each in read if each not in self._decimals]
        self._decoders = ColumnDecoder(old, self._decimals), ColumnDecoder(old, self._others)

    @property
    def is_possible(self) -> bool:
        """Whether it is for some rows."""
        kinds = {self._old.columns[each].type.kind for each in (*self._decimals, *self._others)} | {each.type.kind for each in self._new.columns}
        auto, columns = self._columns.auto_increment, self._columns
        if columns.generated or columns.has_checks or not kinds <= KINDS:
            return False
        if any(source is None and position != columns.row_id for position, source in enumerate(self._sources)):
            return False
        source = None if auto is None else self._sources[auto]
        return auto is None or (source is not None and self._old.columns[source].auto_increment and self._new.columns[auto].type.kind in INTEGERS)

    def write(self, transaction: Transaction, values: Sequence[bytes], row_ids: range) -> int | None:
        """The greatest number of the AUTO_INCREMENT column, or 0, if the rows can be written, and the transaction would do so; else None."""
        if len(values) < ROWS_MIN:
            return None
        try:
            known = self._known(values, row_ids)
        except (GaveUp, MillraceError, OverflowError, pa.ArrowException):
            return None
        if known is None:
            return None
        auto, greatest = self._columns.auto_increment, 0
        if auto is not None:
            numbers = known[auto]
            if not isinstance(numbers, np.ndarray) or numbers.min() <= 0:
                return None
            greatest = int(numbers.max())
        numbers = {n: each for n, each in known.items() if isinstance(each, np.ndarray) and self._new.columns[n].type.kind in INTEGERS}
        arrays = {n: each for n, each in known.items() if n not in numbers}
        is_written = write_columns(transaction, self._new, self._writer, [()] * len(known), numbers, arrays, bool(row_ids), is_hidden=True)
        return greatest if is_written else None

    def _known(self, values: Sequence[bytes], row_ids: range) -> dict[int, Known] | None:
        decimals, others = self._decoders
        found: dict[int, Known | NumberVector] = dict(zip(self._decimals, decimals.decode(values, 0)))
        found |= dict(zip(self._others, others.vectors(values, 0)))
        known: dict[int, Known] = {}
        for position, (source, target) in enumerate(zip(self._sources, self._columns.targets)):
            if source is None:
                known[position] = np.arange(row_ids.start, row_ids.stop)
                continue
            column, before = found[source], self._old.columns[source].type
            array = _array(column) if before == target.column.type else self._converted(column, before, target)
            if not target.column.nullable and isinstance(array, pa.Array) and array.null_count:
                return None
            known[position] = array
        return known

    def _converted(self, column: Known | NumberVector, before: SqlType, target: WrittenColumn) -> Known:
        if before.kind is Kind.DOUBLE:
            raise GaveUp("0 and -0 are one value to Arrow, and two texts")
        if isinstance(column, pa.Array) and pa.types.is_decimal(column.type):
            encoded = column.dictionary_encode(null_encoding="encode")
            old, places = listed(encoded.dictionary), encoded.indices.to_numpy(zero_copy_only=False)
        else:
            some, places = distinct(column)
            old = values_of(some, before)
        after = [None if value is None else self._convert(target, value, before) for value in old]
        kind = target.column.type
        wanted = pa.int64() if kind.kind in INTEGERS | TEMPORALS else arrow_type(kind)
        found = pa.array(after, wanted).take(pa.array(places))
        return found.to_numpy() if pa.types.is_int64(wanted) and not found.null_count else found


def _array(column: Known | NumberVector) -> Known:
    if not isinstance(column, NumberVector):
        return column
    return column.values if column.missing is None else pa.array(column.values, mask=column.missing)
