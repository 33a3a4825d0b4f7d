"""Writes of one row that a worker runs by itself: INSERT of one row, UPDATE and DELETE by a whole primary key.

A client sends the statement once (`point_definition`), then parameters only. The worker runs it as its epoch opens, against the
stored state and what the epoch has written before. A result is a number, or ELSEWHERE: then nothing has happened, and the
client executes the statement as any other. That is the answer to everything unusual: a duplicate key, a row that
another transaction has locked, a value that does not fit or causes a warning, an explicit AUTO_INCREMENT value.
Foreign keys, facts of the session, IGNORE and ON DUPLICATE KEY are not for here at all. All keys must be on the worker's shard (`point_route`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from typing import Any, cast

import msgspec

from backend.clustering.point_writes import PointRoute
from backend.execution.evaluation.access import bind, choose
from backend.execution.evaluation.reading import table_writer
from backend.execution.execution import Execution
from backend.execution.statement_run import utc_now
from backend.execution.writes.columns import Assignments, WrittenColumns
from backend.execution.writes.insert import CompiledInsert
from backend.execution.writes.numbers import number_end
from backend.execution.writes.point_route import point_route
from controller.catalog import from_builtins, to_builtins
from controller.sql.plan import Assignment, Delete, Insert, OnDuplicate, Plan, Update
from dataflow.commit.statement_stage import ELSEWHERE
from dataflow.expressions.compile import compile_predicate
from dataflow.expressions.expression import Expression
from dataflow.expressions.notices import ignore, is_silent, listen
from dataflow.functions import is_volatile
from dataflow.schema import Table
from dataflow.values.modes import Modes
from dataflow.values.types import Row, Value
from persistence.key_range import equal_prefix
from persistence.layout import Entry, auto_increment_counter, row_id_counter
from persistence.shard_store import ShardStore

UNMATCHED, UNCHANGED, CHANGED = 0, 1, 2
"""Results of UPDATE and DELETE: no such row; a row that is as it was; one that was changed, or is gone. INSERT gives the
generated number, 0 if there is none."""

Writes = dict[bytes, bytes | None]
Parameters = Sequence[Value]


def point_definition(plan: Plan, modes: Modes, shard_count: int) -> tuple[bytes, PointRoute] | None:
    """What a worker of so many needs to run the statement, and which worker that is; None if it is not for one."""
    statement = plan.statement
    if plan.facts or plan.first or plan.views or modes.now is not None:
        return None
    if not isinstance(statement, Insert | Update | Delete):
        return None
    table = statement.table
    if table.id < 0 or table.altering or statement.relations or statement.ignore:
        return None
    described: tuple[object, ...]
    if isinstance(statement, Insert):
        plain = statement.on_duplicate is OnDuplicate.ERROR and statement.select is None and statement.before is None
        if not plain or len(statement.rows) != 1 or modes.number_step > 1:
            return None
        expressions = [each for each in statement.rows[0] if each is not None]
        described = ("insert", table, statement.columns, statement.rows[0])
    else:
        path = choose(table, statement.where)
        if statement.order_by or statement.limit is not None or path.index is not table.primary_key or not path.is_complete:
            return None
        expressions = [] if statement.where is None else [statement.where]
        described = ("delete", table, statement.where)
        if isinstance(statement, Update):
            expressions += [each.expression for each in statement.assignments]
            assignments = tuple([(each.column, each.expression, each.is_default) for each in statement.assignments])
            described = ("update", table, statement.where, assignments)
    if any(map(is_volatile, expressions)) or any(column.default_expression is not None for column in table.columns):
        return None
    route = point_route(statement, shard_count)
    return None if route is None else (msgspec.msgpack.encode(to_builtins((described, astuple(modes), bool(route.counter)))), route)


class PointStatement:
    """Statements of one text. `is_locked` says whether somebody holds a key, or waits for it; `is_here`, whether it is the worker's."""

    def __init__(
        self, definition: bytes, store: ShardStore, is_locked: Callable[[bytes], bool], is_here: Callable[[bytes], bool]
    ) -> None:
        described, modes, is_numbered = from_builtins(msgspec.msgpack.decode(definition))
        kind, table, *rest = described
        assert isinstance(table, Table)
        self.table = (table.id, table.version)
        self._modes = Modes(*modes)
        keys = _Keys(table, store, is_locked, is_here)
        match kind:
            case "insert":
                self._run: _Insert | _Change = _Insert(table, rest[0], rest[1], is_numbered, store, keys)
            case "update":
                self._run = _Change(table, rest[0], [Assignment(*each) for each in rest[1]], keys)
            case _:
                self._run = _Change(table, rest[0], None, keys)

    def run(self, rows: Sequence[Parameters], writes: Writes, absent: set[bytes]) -> tuple[list[int], set[bytes]]:
        """The result for each of the parameters, and the keys that were written; see `dataflow.commit.statement_stage`."""
        nothing: Any = None  # a point statement reads and writes what it is given, not through a transaction
        execution = Execution(nothing, (), self._modes, utc_now(), nothing)
        results, keys = [], set[bytes]()
        run = self._run
        listen(self._modes.strict)
        try:
            for parameters in rows:
                execution.parameters = cast(tuple[Value, ...], parameters)
                try:
                    result = run(execution, writes, absent, keys)
                except Exception:
                    result = ELSEWHERE  # where it is executed the error is reported
                results.append(result)
        finally:
            ignore()
        return results, keys


def _is_quiet(execution: Execution) -> bool:
    """Whether nobody has to be told anything."""
    if is_silent() and not execution.report.notices:
        return True
    execution.report.notices.clear()
    listen(execution.modes.strict)
    return False


class _Keys:
    """The keys of a table, as the epoch sees them."""

    def __init__(
        self, table: Table, store: ShardStore, is_locked: Callable[[bytes], bool], is_here: Callable[[bytes], bool]
    ) -> None:
        self.writer = table_writer(table)
        self._get = store.get
        self._is_locked = is_locked
        self._is_here = is_here

    def value(self, key: bytes, writes: Writes) -> bytes | None:
        if key in writes:
            return writes[key]
        stored = self._get(key)
        return None if stored is None else stored[1]

    def is_free(self, key: bytes, writes: Writes) -> bool:
        """Whether nothing has the key, and nobody else is about to; it is the worker's to say."""
        return self._is_here(key) and self.value(key, writes) is None and not self._is_locked(key)

    def are_here(self, entries: Iterable[Entry]) -> bool:
        """Whether all entries are on the worker's shard."""
        return all(not entry.unique or self._is_here(entry.key) for entry in entries)

    def is_locked(self, key: bytes) -> bool:
        return self._is_locked(key)


class _Insert:
    def __init__(
        self, table: Table, columns: tuple[int, ...], cells: tuple[Expression | None, ...], is_numbered: bool, store: ShardStore, keys: _Keys
    ) -> None:
        self._compiled = CompiledInsert(Insert(table, columns, (cells,), OnDuplicate.ERROR))
        self._columns = self._compiled.columns
        self._keys = keys
        self._is_numbered = is_numbered
        self._auto = self._columns.auto_increment
        self._end = 0
        if self._auto is not None:
            self._end = number_end(table.columns[self._auto].type)
        self._floor = table.auto_increment_start
        self._allocate, self._next = store.allocate, store.counter_next
        self._counter, self._row_ids = auto_increment_counter(table.id), row_id_counter(table.id)

    def __call__(self, execution: Execution, writes: Writes, absent: set[bytes], keys: set[bytes]) -> int:
        columns, auto, number = self._columns, self._auto, 0
        row = self._compiled.values(execution, execution.parameters)
        if columns.divides_by_number or columns.violated(tuple(row)) is not None or not _is_quiet(execution):
            return ELSEWHERE
        if columns.row_id is not None:
            row[columns.row_id] = self._allocate(self._row_ids, 1)
        if auto is not None:
            if row[auto] is not None and (row[auto] != 0 or execution.modes.no_auto_value_on_zero):
                return ELSEWHERE
            given = cast(int, execution.parameters[-1]) if self._is_numbered else 0
            number = row[auto] = given or max(self._next(self._counter), self._floor, 1)
            if number >= self._end:
                return ELSEWHERE
        writer, find = self._keys.writer, self._keys
        made = tuple(row)
        key = writer.row_key(made)
        if not find.is_free(key, writes):
            return ELSEWHERE
        entries = writer.entries(made, key)
        for entry in entries:
            if entry.unique and not find.is_free(entry.key, writes):
                return ELSEWHERE
        if number and not self._is_numbered:  # now that it is going to be used: who executes the statement elsewhere takes it there
            self._allocate(self._counter, 1, number)
        for name, value in ((key, writer.encode(made)), *[(entry.key, entry.value) for entry in entries]):
            if name not in writes:
                absent.add(name)
            writes[name] = value
            keys.add(name)
        return number


class _Change:
    """UPDATE, or DELETE without assignments."""

    def __init__(
        self,
        table: Table,
        where: Expression,
        assignments: Sequence[Assignment] | None,
        keys: _Keys,
    ) -> None:
        self._path = choose(table, where)
        self._predicate = compile_predicate(where)
        self._columns = WrittenColumns(table)
        self._assignments = None if assignments is None else Assignments(self._columns, assignments)
        self._keys = keys

    def __call__(self, execution: Execution, writes: Writes, absent: set[bytes], keys: set[bytes]) -> int:
        bound = bind(self._path, execution.parameters)
        if bound is None or len(bound.alternatives) > 1:
            return ELSEWHERE
        if not bound.alternatives:
            return UNMATCHED if _is_quiet(execution) else ELSEWHERE
        find = self._keys
        key = equal_prefix(find.writer.primary_key, find.writer.row_prefix, bound.alternatives[0])
        stored = None if key is None else find.value(key, writes)
        if key is not None and find.is_locked(key):
            return ELSEWHERE
        if key is None or stored is None:
            return UNMATCHED if _is_quiet(execution) else ELSEWHERE
        old = find.writer.decode(stored)
        if not self._predicate(old, execution.parameters):
            return UNMATCHED if _is_quiet(execution) else ELSEWHERE
        changes: list[tuple[bytes, bytes | None]] | None
        if self._assignments is None:
            entries = find.writer.entries(old, key)
            changes = [(key, None), *[(entry.key, None) for entry in entries]] if find.are_here(entries) else None
        else:
            new = self._assignments.apply(old, (), execution)
            if new is old:
                return UNCHANGED if _is_quiet(execution) else ELSEWHERE
            changes = self._changed(key, old, new, writes)
        if changes is None or not _is_quiet(execution):
            return ELSEWHERE
        for name, value in changes:
            writes[name] = value
            keys.add(name)
        return CHANGED

    def _changed(self, key: bytes, old: Row, new: Row, writes: Writes) -> list[tuple[bytes, bytes | None]] | None:
        """What is to be written; None if it may not be, or not here."""
        find, writer, auto = self._keys, self._keys.writer, self._columns.auto_increment
        if self._columns.violated(new) is not None or (auto is not None and old[auto] != new[auto]):
            return None
        if writer.row_key(new) != key:
            return None
        changes: list[tuple[bytes, bytes | None]] = [(key, writer.encode(new))]
        gone, come = writer.changed_entries(old, key, new, key)
        if not find.are_here(gone):
            return None
        for entry in gone:
            changes.append((entry.key, None))
        for entry in come:
            if entry.unique and not find.is_free(entry.key, writes):
                return None
            changes.append((entry.key, entry.value))
        return changes
