"""INSERT of many rows that are stored just as they were given, a column at a time.

What can be told beforehand is looked at once for the statement (`bulk_insert`): every column gets
a parameter, a constant or a default that is the same for all rows, and nothing is computed from, or
checked about, a row. What depends on the values is looked at for a column as a whole.

Invariant: either all rows are written, exactly as `backend.execution.writes.insert` would write them with
`assume_absent`, or nothing is done and `run` says so; then that module finds out what is wrong with which row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from backend.clustering.store import ABSENT, ANY, NEW, Puts, Store
from backend.execution.evaluation.reading import table_writer
from backend.execution.execution import Execution
from backend.execution.outcome import Done
from backend.execution.pace import aside
from backend.execution.transaction import Transaction
from backend.execution.writes.column_values import Array, Column, ColumnValues, listed
from backend.execution.writes.columns import WrittenColumn, WrittenColumns
from backend.execution.writes.numbers import AutoIncrement, number_end
from controller.sql.plan import Insert, OnDuplicate, Plan
from dataflow.breath import in_parts
from dataflow.expressions.expression import Literal, Parameter
from dataflow.schema import Table, TableColumn
from dataflow.values.storing import column_fitness
from dataflow.values.storing.arrays import array_fits
from dataflow.values.types import INTEGERS, Row, Value
from persistence.layout import IndexEntries, TableWriter

AT_ONCE_MIN = 128
"""From so many rows on numpy is quicker."""

Fits = Callable[[Sequence[Value]], bool]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A column that is given a value: the parameter's, or the literal's for all rows."""

    position: int
    given: Parameter | Literal
    fits: Fits
    column: TableColumn

    def array(self, values: Column) -> Array | pa.Array | None:
        """Many values that are stored as they are, if they are known to be."""
        if len(values) < AT_ONCE_MIN:
            return None
        if isinstance(values, Sequence):
            if self.column.type.kind not in INTEGERS or type(values[0]) is not int:
                return None
            values = np.asarray(values)
        return values if array_fits(self.column.type, self.given.type, self.column.nullable, values) else None


class BulkInsert:
    def __init__(self, insert: Insert, columns: WrittenColumns, cells: Sequence[_Cell], defaults: Sequence[tuple[int, WrittenColumn]]) -> None:
        self._table = insert.table
        self._row_id = columns.row_id
        self._auto_increment = columns.auto_increment
        self._is_numbered = columns.auto_increment is not None and columns.auto_increment not in insert.columns
        """AUTO_INCREMENT values are generated, for all rows."""
        self._number_end = 0 if columns.auto_increment is None else min(number_end(insert.table.columns[columns.auto_increment].type), 1 << 63)
        first = insert.table.primary_key.parts[0].column_id
        self._first = next(n for n, column in enumerate(insert.table.columns) if column.id == first)
        self._cells = cells
        self._defaults = defaults
        self._writer = table_writer(insert.table)

    async def run(
        self, execution: Execution, plan: Plan, parameters: Sequence[Value], numbering: Callable[[int], AutoIncrement]
    ) -> Done | None:
        """Write all rows; None if they have to be looked at one by one. `numbering` gives the statement's numbers for so many rows."""
        if self._is_numbered and execution.modes.number_step > 1:
            return None
        start, width = plan.batch or (0, len(plan.parameter_types))
        after = len(plan.parameter_types) - start - width + len(plan.facts)
        end = len(parameters) - after
        count = (end - start) // width if width else 1
        columns: list[Sequence[Value]] = [()] * len(self._table.columns)
        numbers: dict[int, Array] = {}
        arrays: dict[int, Array | pa.Array] = {}
        if not aside(count, lambda: self._read(execution, parameters, (start, width, end), columns, numbers, arrays)):
            return None
        last_id, generated_id = 0, None
        if self._auto_increment is not None and self._is_numbered:
            numbered = numbering(count)
            await numbered.reserve()
            last_id = generated_id = numbered.position
            if generated_id + count > self._number_end:
                return None
            if count >= AT_ONCE_MIN:
                numbers[self._auto_increment] = np.arange(generated_id, generated_id + count)
            else:
                columns[self._auto_increment] = range(generated_id, generated_id + count)
        elif self._auto_increment is not None:
            place = self._auto_increment
            given = numbers[place] if place in numbers else np.asarray(arrays[place] if place in arrays else columns[place])
            # Numbers that are given and below those that are handed out leave the counter alone.
            if given.dtype != np.int64 or given.min() <= 0 or not execution.numbers.is_above(self._table, int(given.max())):
                return None
            last_id = int(given[-1])
        if self._row_id is not None:
            row_ids = columns[self._row_id] = await execution.numbers.row_ids(self._table.id, count)
            if count >= AT_ONCE_MIN:
                numbers[self._row_id] = np.arange(row_ids.start, row_ids.stop)
        if not aside(count, partial(write_columns, execution.transaction, self._table, self._writer, columns, numbers, arrays, self._row_id is not None)):
            return None
        info = f"Records: {count}  Duplicates: 0  Warnings: 0" if count > 1 else ""
        return Done(count, count, last_id, generated_id, info, ())

    def _read(
        self,
        execution: Execution,
        parameters: Sequence[Value],
        batch: tuple[int, int, int],
        columns: list[Sequence[Value]],
        numbers: dict[int, Array],
        arrays: dict[int, Array | pa.Array],
    ) -> bool:
        """Fill `columns`, or in their place `numbers` of integer columns or `arrays` of others; False if a value is not stored as it is."""
        start, width, end = batch
        count = (end - start) // width if width else 1
        by_column = parameters if isinstance(parameters, ColumnValues) else None
        for cell in self._cells:
            given = cell.given
            if isinstance(given, Parameter) and start <= given.index < start + width:
                found = by_column.column(given.index) if by_column is not None else parameters[given.index : end : width]
                array = cell.array(found)
                if array is not None:
                    is_number = cell.column.type.kind in INTEGERS and isinstance(array, np.ndarray)
                    (numbers if is_number else arrays)[cell.position] = array
                    continue
                column = listed(found)
                if not cell.fits(column):
                    return False
            else:
                if isinstance(given, Literal):
                    value = given.value
                else:
                    value = parameters[given.index if given.index < start else given.index + end - start - width]
                if not cell.fits((value,)):
                    return False
                column = (value,) * count
            columns[cell.position] = column
        for position, target in self._defaults:
            columns[position] = (target.default(execution, ()),) * count
        if self._row_id is not None and self._first in numbers:
            # In the order of their keys LevelDB finds the place of each next to that of the one before.
            order = numbers[self._first].argsort(kind="stable")
            numbers.update({position: array[order] for position, array in numbers.items()})
            arrays.update({position: array.take(order) for position, array in arrays.items()})
            places = order.tolist()
            columns[:] = [column and [column[place] for place in places] for column in columns]
        return True


def write_columns(
    transaction: Transaction,
    table: Table,
    writer: TableWriter,
    columns: Sequence[Sequence[Value]],
    numbers: Mapping[int, Array],
    arrays: Mapping[int, Array | pa.Array],
    is_new: bool,
    is_hidden: bool = False,
) -> bool:
    """Rows given by column: INTEGERs in `numbers`, what else is an array in `arrays`, all other values in `columns`.

    `is_new`: their keys were handed out for them alone. `is_hidden`: nobody else writes to the table. False, and nothing is
    written, if one of the rows is the duplicate of another.
    """
    rows = list[Row]()
    numbered = writer.numbered(numbers, transaction.store.shard_count > 1)
    known: dict[int, Array | pa.Array] = {**numbers, **arrays}
    encoded = writer.codec.encode_columns(known) if len(known) == len(columns) else None
    if numbered is None or encoded is None:
        lists = [listed(known[n]) if n in known else column for n, column in enumerate(columns)]
        for places in in_parts(range(len(lists[0]))):
            rows += zip(*[column[places[0] : places[-1] + 1] for column in lists])
    if numbered is None:
        keys = writer.row_keys(rows)
        entries = writer.all_entries(rows, keys)
    else:
        keys, entries = numbered
    if entries is None or (not is_new and len(set(keys)) < len(keys)):
        return False
    if any(each.unique and len(set(each.keys)) < len(keys) for each in entries):
        return False
    transaction.use_table(table.id, table.version)
    start, values = encoded or writer.codec.encode_apart(rows)
    _put(transaction, IndexEntries(keys, values, keys, True), NEW if is_new else ABSENT, start)
    for each in entries:
        # An entry that is not unique contains its row's key.
        _put(transaction, each, ABSENT if each.unique else NEW if is_new or is_hidden else ANY)
    return True


def _put(transaction: Transaction, entries: IndexEntries, expected: int, start: bytes = b"") -> None:
    for shard, puts in puts_of(transaction.store, entries, expected, start).items():
        transaction.put_all(shard, puts)


def puts_of(store: Store, entries: IndexEntries, expected: int, start: bytes = b"") -> dict[int, Puts]:
    """What each shard has to store of them."""
    if store.shard_count == 1:
        return {0: Puts(entries.keys, entries.values, expected, start)}
    shards: dict[int, Puts] = {}
    for route, key, value in zip(entries.routes, entries.keys, entries.values):
        shard = store.shard_of(route)
        puts = shards.get(shard)
        if puts is None:
            puts = shards[shard] = Puts([], [], expected, start)
        puts.keys.append(key)
        puts.values.append(value)
    return shards


def bulk_insert(insert: Insert, columns: WrittenColumns, defaulted: Sequence[int]) -> BulkInsert | None:
    """How to insert any number of rows at once; None if each has to be looked at."""
    table = insert.table
    is_plain = insert.on_duplicate is OnDuplicate.ERROR and not insert.ignore and insert.select is None
    if not is_plain or insert.relations or len(insert.rows) != 1 or table.altering:
        return None
    if columns.generated or columns.has_checks:
        return None
    auto = columns.auto_increment
    if auto is not None and (columns.row_id is not None or not number_end(table.columns[auto].type)):
        return None
    cells = []
    for position, given in zip(insert.columns, insert.rows[0]):
        if not isinstance(given, Parameter | Literal):
            return None
        column = table.columns[position]
        fits = column_fitness(column.type, given.type, column.nullable)
        if fits is None:
            return None
        cells.append(_Cell(position, given, fits, column))
    defaults = [(position, columns.targets[position]) for position in defaulted if position != auto]
    if any(not target.has_plain_default for _, target in defaults):
        return None
    return BulkInsert(insert, columns, cells, defaults)
