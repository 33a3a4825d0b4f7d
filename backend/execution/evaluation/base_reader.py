"""Base tables as readers: looked up along the index that the key columns fit, or scanned."""

from __future__ import annotations

from collections.abc import Sequence

from backend.execution.evaluation.access import AccessPath, Bound, best_index, choose
from backend.execution.evaluation.lookup_value import UNUSABLE, lookup_value
from backend.execution.evaluation.reader import (
    Conditions,
    Keys,
    ManyRows,
    Run,
    fulfilling,
    having_keys,
    predicate_of,
)
from backend.execution.evaluation.reading import find, find_bound, lock_rows, row_decoder
from backend.execution.pace import breathe, parts
from backend.execution.rows import Rows
from dataflow.expressions.expression import Column
from dataflow.expressions.source import key_function
from dataflow.functions import call
from dataflow.plan.node import Columns
from dataflow.schema import Table
from dataflow.values.types import Row, SqlType, Value

SMALL_ROWS = 2_000
RANGES_SHARE = 10
"""A range of a table that has so many times its rows is better read by itself."""
GETS_MAX = 20_000
"""Beyond so many whole keys a scan is cheaper."""
RANGES_MAX = 250
"""Beyond so many ranges of an index a scan is cheaper."""


class TableReader:
    """A stored table, with the transaction's own rows in it."""

    def __init__(self, table: Table, columns: Columns, conditions: Conditions) -> None:
        self._table = table
        self._columns = columns
        self._decode = row_decoder(table)
        self._predicate = predicate_of(conditions)
        types = [column.type for column in table.columns]
        self._key_of = key_function(columns, types) if columns else None
        where = None if not conditions else conditions[0] if len(conditions) == 1 else call("and", *conditions)
        self._path = choose(table, where)
        self._reads_all = not self._path.equalities and not self._path.comparisons
        best = best_index(table, columns)
        parts = () if best is None else best.fixed
        self._index = None if best is None or self._path.is_complete else best.index
        self._places = tuple(columns.index(each) for each in parts)
        self._lookups = [lookup_value(Column(0, types[each]), Column(0, types[each]), equality=True) for each in parts]

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        if keys is not None and not keys:
            return []
        transaction = run.execution.transaction
        bound = None if keys is None or self._index is None else self._bound(keys)
        locking = next((each for each in run.locks if each.tables is None or self._table.id in each.tables), None)
        epoch = await run.epoch()
        if bound is None:
            chunks = find(transaction, self._table, self._path, run.parameters, locking=locking, epoch=epoch)
        else:
            chunks = find_bound(transaction, self._table, bound, locking=locking, epoch=epoch)
        decode, predicate, key_of, parameters = self._decode, self._predicate, self._key_of, run.parameters
        found: Rows[Row] = Rows()
        count = 0
        async for chunk in chunks:
            if run.rows_max is not None:
                is_whole = bound is None and self._reads_all
                await self._require_few(run, run.rows_max, count, count + len(chunk), is_whole)
            count += len(chunk)
            for part in parts(chunk):
                rows = [(each, decode(each[2])) for each in part]
                if key_of is not None and keys is not None:
                    rows = [pair for pair in rows if key_of(pair[1]) in keys]
                if predicate is not None:
                    rows = [pair for pair in rows if predicate(pair[1], parameters)]
                if locking is not None:
                    rows = await lock_rows(transaction, rows, locking)
                found.add([row for _, row in rows])
        return found

    async def _require_few(self, run: Run, rows_max: int, before: int, count: int, is_whole: bool) -> None:
        """Raises `ManyRows`. The table's size is asked for when it is found not to be small, and when a range is found to be large."""
        is_large = before <= rows_max < count
        if run.estimated_rows is not None and is_large and not is_whole:
            is_large = await run.estimated_rows(self._table) < RANGES_SHARE * count
        elif run.estimated_rows is not None and not is_large and is_whole and before <= SMALL_ROWS < count:
            is_large = await run.estimated_rows(self._table) > rows_max
        if is_large:
            raise ManyRows

    def _bound(self, keys: Keys) -> Bound | None:
        """What to look up in the index, or None if reading everything is better."""
        assert self._index is not None
        alternatives: dict[tuple[Value, ...], None] = {}
        for values in keys.values():
            breathe()
            wanted: list[Value] = []
            for place, lookup in zip(self._places, self._lookups):
                value = UNUSABLE if lookup is None else lookup(values[place])
                if value is UNUSABLE:
                    return None
                wanted.append(value)  # type: ignore[arg-type]
            alternatives[tuple(wanted)] = None
        whole = self._index.unique and len(self._places) == len(self._index.parts)
        if len(alternatives) > (GETS_MAX if whole else RANGES_MAX):
            return None
        return Bound(AccessPath(self._index), list(alternatives), [])


class MemoryReader:
    """A table whose rows are at hand."""

    def __init__(self, table: int, types: Sequence[SqlType], columns: Columns, conditions: Conditions) -> None:
        self._table = table
        self._key_of = key_function(columns, types) if columns else None
        self._predicate = predicate_of(conditions)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        rows = list(run.memory[self._table])
        if self._key_of is not None and keys is not None:
            rows = having_keys(rows, self._key_of, keys)
        return fulfilling(rows, self._predicate, run.parameters)


def table_rank(table: Table, columns: Columns, conditions: Conditions) -> int:
    """How much of the table is read by these keys and conditions; less is better."""
    where = None if not conditions else conditions[0] if len(conditions) == 1 else call("and", *conditions)
    path = choose(table, where)
    if path.is_complete:
        return 0
    best = best_index(table, columns)
    if best is not None:
        return 0 if best.is_whole else 1
    if path.equalities:
        return 2
    if path.comparisons:
        return 3
    return 6 if columns else 8
