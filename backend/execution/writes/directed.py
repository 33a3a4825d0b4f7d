"""UPDATE and DELETE of rows that a query finds, in one table or several.

All rows are found before the first is changed, so the query never sees the statement's own
changes. Each row is changed once under each of its table's names, with the values of the first query row that
has its key. What the statement has already done to a row under another name of its table, or through a foreign
key, is kept. A row that somebody else has changed since the query saw it is a lost race like any other.
"""

from __future__ import annotations

from typing import Any

from backend.execution.answering.query import compile_read
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import Found, find_bound, row_decoder
from backend.execution.execution import Execution
from backend.execution.outcome import Done
from backend.execution.pace import breathe, parts
from backend.execution.transaction import RowsChanged
from backend.execution.writes.update import CompiledDelete, CompiledUpdate, Victim
from controller.sql.locking import EXCLUSIVE
from controller.sql.plan import Delete, Directed, Update
from dataflow.expressions.source import key_function
from dataflow.values.types import Row


class CompiledDirected:
    def __init__(self, directed: Directed) -> None:
        self._query = compile_read(directed.query)
        self._changes = [_Change(change, start) for change, start in directed.changes]
        self.ignore = any(change.ignore for change, _ in directed.changes)
        tables = {change.table.id for change, _ in directed.changes}
        self._overlap = len(tables) < len(self._changes) or any(change.relations for change, _ in directed.changes)

    async def run(self, execution: Execution) -> Done:
        selected = (await self._query.run(execution)).rows
        victims = [await change.victims(execution, selected) for change in self._changes]
        affected = matched = 0
        for number, (change, found) in enumerate(zip(self._changes, victims)):
            if number and self._overlap:
                found = await change.as_changed(execution, found)
            done = await change.compiled.run(execution, found)
            affected += done.affected
            matched += done.matched
        info = f"Rows matched: {matched}  Changed: {affected}  Warnings: {execution.warning_count}"
        return Done(affected, matched, info=info, warnings=execution.warnings())


class _Change:
    def __init__(self, change: Update | Delete, start: int) -> None:
        self._table = change.table
        self.compiled = CompiledUpdate(change) if isinstance(change, Update) else CompiledDelete(change)
        self._seen = slice(start, start + len(change.table.columns))
        places = {column.id: place for place, column in enumerate(change.table.columns)}
        columns = tuple(places[part.column_id] for part in change.table.primary_key.parts)
        types = [column.type for column in change.table.columns]
        self._key_columns = columns
        self._key_of = key_function(columns, types)
        self._decode = row_decoder(change.table)

    async def victims(self, execution: Execution, selected: list[Row]) -> list[Victim]:
        """The rows of the table with the keys that were selected, in that order."""
        wanted: dict[Any, tuple[Row, Row]] = {}
        for outputs in selected:
            breathe()
            seen = outputs[self._seen]
            if seen[self._key_columns[0]] is not None:
                wanted.setdefault(self._key_of(seen), (seen, outputs))
        found: dict[Any, Victim] = {}
        for each, row in await self._rows(execution, [seen for seen, _ in wanted.values()]):
            breathe()
            key = self._key_of(row)
            seen, outputs = wanted[key]
            if row != seen:
                raise RowsChanged
            found[key] = (each, row, outputs)
        if len(found) < len(wanted):
            raise RowsChanged
        return [found[key] for key in wanted]

    async def as_changed(self, execution: Execution, victims: list[Victim]) -> list[Victim]:
        """The victims that are still there, as the statement has left them so far."""
        rows = await self._rows(execution, [row for _, row, _ in victims])
        now = {self._key_of(row): (each, row) for part in parts(rows) for each, row in part}
        keys = [(self._key_of(row), outputs) for part in parts(victims) for _, row, outputs in part]
        return [(*now[key], outputs) for key, outputs in keys if key in now]

    async def _rows(self, execution: Execution, rows: list[Row]) -> list[tuple[Found, Row]]:
        """The rows of the table with the keys of `rows`, as the transaction sees them now."""
        if not rows:
            return []
        keys = [tuple([row[place] for place in self._key_columns]) for part in parts(rows) for row in part]
        bound = Bound(AccessPath(self._table.primary_key), keys, [])
        locking = EXCLUSIVE if execution.transaction.locking else None
        found: list[tuple[Found, Row]] = []
        async for chunk in find_bound(execution.transaction, self._table, bound, locking=locking):
            found += [(each, self._decode(each[2])) for part in parts(chunk) for each in part]
        return found
