"""ALTER TABLE that changes stored values: every row is stored anew, in a table that takes the old one's place.

1. The table is marked `altering`: commits planned before are refused, and statements that
   write to it wait (`Database.execute`). Reads go on. The new table is published under a
   name that no statement can have said, so its id is taken whatever happens.
2. The rows are copied in order of the primary key, converted as INSERT converts them, by column where nothing is to be said
   about any of them (`backend.execution.column_copy`). The first that does not fit ends it all: the mark goes, and so does the new table.
3. In one change of the catalog the old table goes and the new one takes its name.

So writers are held up for as long as the copy takes, a few seconds for 100,000 rows, and nobody
else. A controller that takes over from one that died here undoes step 1 (`abandon_copies`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from backend.clustering.staged_parts import LARGE_WRITES
from backend.clustering.store import Committed, Store
from backend.execution.column_copy import ColumnCopy
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import Found, find_bound, row_decoder
from backend.execution.execution import Execution
from backend.execution.transaction import Transaction
from backend.execution.writes.columns import WrittenColumn, WrittenColumns, implicit_default
from backend.execution.writes.duplicates import duplicate_entry
from backend.execution.writes.numbers import Numbers, whole
from backend.execution.writes.writing import RowWriter
from controller.catalog import Catalog, CatalogChange, Copy
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.expressions.compile import compile_predicate
from dataflow.schema import Table
from dataflow.values.modes import Modes
from dataflow.values.temporal import from_datetime, from_utc, to_utc
from dataflow.values.types import REALS, Kind, Row, SqlType, Value
from persistence.layout import auto_increment_counter

BATCH_ROWS = 400
NAME_PREFIX = "#sql-alter-"


class CatalogWriter(Protocol):
    async def load(self) -> Catalog: ...

    async def replace(self, old_version: int, change: CatalogChange) -> Catalog: ...


async def carry_out_copy(copy: Copy, change: CatalogChange, catalog_store: CatalogWriter, store: Store) -> Catalog:
    """Copy the rows and publish `change` with the new table in it; on failure nothing of it remains."""
    catalog = await catalog_store.load()
    old = catalog.tables[copy.table_id]
    frozen = replace(old, altering=True, version=old.version + 1)
    new = replace(copy.table, name=f"{NAME_PREFIX}{copy.table.id}", foreign_keys=())
    catalog = await catalog_store.replace(catalog.version, CatalogChange(tables_put=(frozen, new)))
    try:
        await _Copier(store, frozen, new, copy).copy()
        final = replace(copy.table, version=new.version + 1)
        return await catalog_store.replace(
            catalog.version,
            replace(change, copies=(), tables_put=(final, *change.tables_put), tables_dropped=(old.id,)),
        )
    except MillraceError:
        await abandon_copies(catalog_store)
        raise


async def abandon_copies(catalog_store: CatalogWriter) -> Catalog:
    """Undo whatever copies are under way."""
    catalog = await catalog_store.load()
    frozen = [table for table in catalog.tables.values() if table.altering]
    hidden = [table.id for table in catalog.tables.values() if table.name.startswith(NAME_PREFIX)]
    if not frozen and not hidden:
        return catalog
    thawed = tuple(replace(table, altering=False, version=table.version + 1) for table in frozen)
    return await catalog_store.replace(
        catalog.version, CatalogChange(tables_put=thawed, tables_dropped=tuple(hidden))
    )


class _Copier:
    def __init__(self, store: Store, old: Table, new: Table, copy: Copy) -> None:
        self._store = store
        self._old = old
        self._new = new
        self._numbers = Numbers(store)
        self._columns = WrittenColumns(new)
        self._zone = copy.time_zone
        self._left_out = None if copy.left_out is None else compile_predicate(copy.left_out)
        modes = Modes.parse(",".join(copy.sql_mode))
        self._execution = Execution(Transaction(store), (), modes, from_datetime(datetime.now(UTC)), self._numbers)
        self._sources = {column.id: position for position, column in enumerate(old.columns)}
        self._next_number = 1
        sources = [None if position == self._columns.row_id else self._sources.get(column.id) for position, column in enumerate(new.columns)]
        self._at_once = LARGE_WRITES // (1 + sum(index.unique for index in new.indexes))
        self._by_column = ColumnCopy(old, new, self._columns, sources, self._stored)

    async def copy(self) -> None:
        await self._start_numbers()
        decode = row_decoder(self._old)
        is_plain = self._left_out is None and self._by_column.is_possible
        path, done = Bound(AccessPath(self._old.primary_key), [()], []), 0
        async for chunk in find_bound(Transaction(self._store), self._old, path):
            for stored in _parts(chunk, self._at_once if is_plain else BATCH_ROWS):
                values = [value for _, _, value in stored]
                if not is_plain or not await self._copied(values):
                    for first in range(0, len(values), BATCH_ROWS):
                        rows = [decode(value) for value in values[first : first + BATCH_ROWS]]
                        if self._left_out is not None:
                            rows = [row for row in rows if not self._left_out(row, ())]
                        await self._copy_rows(rows, done)
                        done += len(rows)
                else:
                    done += len(values)
        if self._columns.auto_increment is not None:
            await self._numbers.raise_above(self._new, self._next_number - 1)

    @property
    def _shown(self) -> Table:
        return replace(self._new, name=self._old.name)

    async def _copied(self, values: list[bytes]) -> bool:
        """Copy them by column; False if that cannot be done."""
        row_ids = await self._row_ids(len(values))
        transaction = Transaction(self._store)
        notices = self._execution.report.notices
        before = len(notices)
        greatest = self._by_column.write(transaction, values, row_ids)
        if len(notices) > before:  # of which row, only a look at each can tell
            del notices[before:]
            return False
        if greatest is None or not isinstance(await transaction.try_commit(), Committed):
            return False
        self._next_number = max(self._next_number, greatest + 1)
        return True

    async def _copy_rows(self, rows: list[Row], first: int) -> None:
        """Copy them one by one; `first` have been copied before."""
        row_ids = await self._row_ids(len(rows))
        new = []
        for position, row in enumerate(rows):
            self._execution.report.row_number = first + position + 1
            new.append(self._converted(row, row_ids[position] if row_ids else 0))
        transaction = Transaction(self._store)
        writer = RowWriter(transaction, self._new)
        await writer.prefetch_inserts(new)
        for row in new:
            duplicate = await writer.insert(row)
            if duplicate is not None:
                raise duplicate_entry(self._shown, duplicate.index, row)
        await transaction.commit()

    async def _row_ids(self, count: int) -> range:
        return range(0) if self._columns.row_id is None else await self._numbers.row_ids(self._new.id, count)

    async def _start_numbers(self) -> None:
        """A column that was AUTO_INCREMENT before goes on where it was."""
        if any(column.auto_increment for column in self._old.columns):
            self._next_number = await self._store.allocate(auto_increment_counter(self._old.id), 0)
        self._next_number = max(self._next_number, self._new.auto_increment_start)

    def _converted(self, old: Row, row_id: int) -> Row:
        row: list[Value] = []
        for position, target in enumerate(self._columns.targets):
            column = target.column
            source = self._sources.get(column.id)
            if position == self._columns.row_id:
                value: Value = row_id
            elif source is None:
                value = self._added(position, tuple(row))
            else:
                value, before = old[source], self._old.columns[source].type
                if before != column.type:
                    value = self._stored(target, value, before)
            if position == self._columns.auto_increment:
                value = self._number(value, column.type, source is not None and self._old.columns[source].auto_increment)
            if value is None and not column.nullable and column.generated is None:
                value = self._without_null(position, source)
            row.append(value)
        new = self._columns.complete(row, self._execution)
        violated = self._columns.violated(new)
        if violated is not None:
            raise InvalidStatement(*violated)
        return new

    def _stored(self, target: WrittenColumn, value: Value, before: SqlType) -> Value:
        """A value in its new type; what becomes or was a TIMESTAMP moves between UTC and the session's zone."""
        was, becomes = before.kind is Kind.TIMESTAMP, target.column.type.kind is Kind.TIMESTAMP
        if was and not becomes and isinstance(value, int):
            value = from_utc(value, self._zone)
        value = target.store(value, before, self._execution)
        if becomes and not was and isinstance(value, int):
            value = to_utc(value, self._zone)
        return value

    def _added(self, position: int, row: Row) -> Value:
        target = self._columns.targets[position]
        column = target.column
        if column.generated is not None or column.auto_increment:
            return None
        if column.default_now or column.default_expression is not None or column.has_default:
            return target.default(self._execution, row + (None,) * (len(self._columns.targets) - len(row)))
        return None if column.nullable else implicit_default(column.type)

    def _number(self, value: Value, type_: SqlType, keeps_zero: bool) -> Value:
        """The value of the AUTO_INCREMENT column; a 0 stays where the column was AUTO_INCREMENT before."""
        if value is None or (value == 0 and not keeps_zero and not self._execution.modes.no_auto_value_on_zero):
            value = float(self._next_number) if type_.kind in REALS else self._next_number
        self._next_number = max(self._next_number, whole(value) + 1)
        return value

    def _without_null(self, position: int, source: int | None) -> Value:
        """NULL in a column that is NOT NULL from now on."""
        column = self._columns.targets[position].column
        if self._execution.modes.strict:
            same = source is not None and self._old.columns[source].type == column.type
            if same:
                raise InvalidStatement(Condition.INVALID_USE_OF_NULL)
            raise InvalidStatement(Condition.DATA_TRUNCATED, column.name, self._execution.report.row_number)
        self._execution.warn(Condition.DATA_TRUNCATED, column.name, self._execution.report.row_number)
        return implicit_default(column.type)


def _parts(rows: list[Found], rows_max: int) -> Iterator[list[Found]]:
    """About as many in each."""
    count = -(-len(rows) // rows_max)
    for number in range(count):
        yield rows[number * len(rows) // count : (number + 1) * len(rows) // count]
