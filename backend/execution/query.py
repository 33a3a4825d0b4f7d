"""Any SELECT: its node's rows by key, from a view or evaluated from the base tables, then what follows them.

All that a statement shows is of one moment. A view is, and so is what is read as of one epoch; but
a view may be ahead of that epoch, so a query with several parts that read stored tables, such as a
recursive one, uses no views.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backend.execution.execution import Execution
from backend.execution.grouping import row_key
from backend.execution.memory_account import size_of
from backend.execution.outcome import ResultSet, RowStream
from backend.execution.pace import PART_ROWS_MIN, batches, breathe, parts
from backend.execution.point import point_query, scanned_query
from backend.execution.reader import Keys, Run, conditions_of, fulfilling, projected
from backend.execution.readers import Readers
from backend.execution.recursion import CompiledRecursion
from backend.execution.rows import Rows, Weight, drop, held, held_shared, weighed
from backend.execution.select import CompiledSelect, Pair, Sorter, count_of, is_late
from backend.execution.viewing import QueryViews
from backend.execution.window import CompiledWindow
from backend.view_definition import ViewDefinition
from controller.sql.plan import Query, Recursion, Select
from dataflow.compile import compile_predicate, compile_row, compile_scalar
from dataflow.expression import Expression, parameters_of
from dataflow.node import Base, Node, inputs_of
from dataflow.source import key_function
from dataflow.types import Row, Value

SCANNED_ROWS_MAX = 2_000
"""A result of one table with more rows than this is read from it, not kept in a view."""
SCANS_BEFORE_VIEW = 5
"""So many times all rows of a table are read for a range of them, before they are kept in order."""
SCANS_AFTER_LARGE = 50
"""So many times a query is evaluated after such a result, before a view is tried again."""


class CompiledQuery:
    def __init__(
        self,
        query: Query,
        readers: Readers | None = None,
        division_errors: bool = False,
        parts: Sequence[int] = (),
        scan: CompiledSelect | None = None,
    ) -> None:
        """`division_errors`: what is selected may not come from a division by zero.

        `parts` are how many stored tables each part of the statement reads, if this is one of several. `scan` is
        what evaluates the query where no view does: it can give a large result while it is read.
        """
        self._scan = scan
        self._scans_only = 0
        self.query = query
        self.columns = query.columns
        if readers is None:
            readers = Readers({table.id: table for table in query.tables if table.id >= 0})
        parts = parts or _parts(query)
        self._alone = sum(parts) <= 1
        self._may_use_views = len(parts) <= 1
        self._prior = [(table, _compiled_prior(each, readers, parts)) for table, each in query.prior]
        self._key_columns = tuple(sorted({key.column for key in query.keys}))
        types = query.node.types
        self._keys = [
            (
                self._key_columns.index(key.column),
                [compile_scalar(value) for value in key.values],
                key_function((0,), [types[key.column]]),
            )
            for key in query.keys
        ]
        self._key_of = key_function(self._key_columns, types)
        self._key_of_values = key_function(
            tuple(range(len(self._key_columns))), [types[each] for each in self._key_columns]
        )
        self.views = QueryViews(query, self._key_columns)
        self.views.is_scan = scan is not None
        # Whether there is a row at all decides on the default, before the filter does.
        conditions = conditions_of(query.filter) if query.default is None else ()
        self._reader = readers.reader(query.node, self._key_columns, conditions)
        self._filter = None if query.filter is None else compile_predicate(query.filter)
        self._windows = [CompiledWindow(each) for each in query.windows]
        self._project = compile_row(query.outputs, division_errors)
        self._sorter = Sorter(query.order_by, query.outputs) if query.order_by else None
        self._late = is_late(query.outputs, query.distinct, self._sorter)
        self._distinct = row_key([each.type for each in query.outputs]) if query.distinct else None
        self._limit = None if query.limit is None else compile_scalar(query.limit)
        self._offset = None if query.offset is None else compile_scalar(query.offset)

    @property
    def finishing(self) -> list[Expression]:
        """All that is evaluated to make the result of the node's rows."""
        query = self.query
        given: list[Expression | None] = [*query.outputs, query.limit, query.offset]
        given += [item.expression for item in query.order_by]
        for window in query.windows:
            given += [*window.function.arguments, *window.partition]
            given += [item.expression for item in window.function.order]
            given += [item.expression for item in window.order]
            given += [bound for bound in window.frame or () if isinstance(bound, Expression)]
        if not self.views.folds_filter:
            given.append(query.filter)
        return [each for each in given if each is not None]

    @property
    def places_read(self) -> tuple[int, ...]:
        """The parameters that what is made of the node's rows depends on."""
        return tuple(sorted({place for each in self.finishing for place in parameters_of(each)}))

    @property
    def key_columns(self) -> tuple[int, ...]:
        return self._key_columns

    def explained_view(
        self, parameters: tuple[Value, ...], shard_count: int, fleeting: frozenset[int]
    ) -> tuple[ViewDefinition | None, Node, str]:
        """For EXPLAIN, see `QueryViews.explained`."""
        return self.views.explained(parameters, shard_count, fleeting)

    async def run(self, execution: Execution) -> ResultSet:
        found = await self.stream(execution, False)
        assert isinstance(found, ResultSet)
        return found

    async def stream(self, execution: Execution, may_stream: bool = True) -> ResultSet | RowStream:
        """As `run`, but a large result may come while it is read."""
        if self._scan is None:
            rows, count = await self.rows(execution, execution.memory)
        else:
            found = await self._viewed(Run(execution, execution.memory, (), self._alone))
            if found is None:
                return await self._scanned(self._scan, execution, may_stream)
            rows, count = self.finished(found, execution.parameters)
        return ResultSet(self.columns, rows, execution.warnings(), None if self._limit is None else count)

    async def _viewed(self, run: Run) -> list[Row] | None:
        """The rows from a view, unless the last result was so large that it is better not kept."""
        if self._scans_only:
            self._scans_only -= 1
            return None
        found = await self.views.rows(run, self.wanted(run.parameters) if self._key_columns else None)
        if found is not None and len(found) > SCANNED_ROWS_MAX:
            self._scans_only = SCANS_AFTER_LARGE
        return found

    async def _scanned(self, scan: CompiledSelect, execution: Execution, may_stream: bool) -> ResultSet | RowStream:
        found = await scan.stream(execution, may_stream)
        if not isinstance(found, ResultSet) or len(found.rows) > SCANNED_ROWS_MAX:
            self._scans_only = SCANS_AFTER_LARGE
        return found

    async def rows(self, execution: Execution, memory: Mapping[int, Sequence[Row]]) -> tuple[list[Row], int]:
        """The result, and what FOUND_ROWS() is after it; `memory` are tables that exist only now."""
        parameters = execution.parameters
        breathe()
        if self._prior:
            memory = dict(memory)
            for table, query in self._prior:
                memory[table], _ = await query.rows(execution, memory)
        return self.finished(await self._found(Run(execution, memory, self.query.locking, self._alone)), parameters)

    def finished(self, rows: Sequence[Row], parameters: tuple[Value, ...]) -> tuple[list[Row], int]:
        """The result that the node's rows make, and what FOUND_ROWS() is after it."""
        if self.query.default is not None:
            rows = fulfilling(list(rows) or [self.query.default], self._filter, parameters)
        if self._windows:
            columns = [each.values(rows, parameters) for each in self._windows]
            values = zip(*columns)
            rows = held_shared([row + next(values) for row in part] for part in parts(rows))
        pairs = self._pairs(rows, parameters)
        if self._distinct is not None:
            pairs = self._unique(pairs, self._distinct)
        if self._sorter is not None:
            self._sorter.sort(pairs, parameters)
        start = 0 if self._offset is None else count_of(self._offset((), parameters))
        stop = None if self._limit is None else start + count_of(self._limit((), parameters))
        wanted = pairs[start:stop]
        if len(wanted) <= PART_ROWS_MIN:
            result = [output for _, output in wanted]
        else:
            result = held_shared([output for _, output in part] for part in parts(wanted))
        # Those that OFFSET has skipped count, those after LIMIT only if the statement says so.
        count = len(pairs)
        if stop is not None and not self.query.count_found_rows:
            count = min(stop, count) if stop > start else 0
        return projected(result, self._project if self._late else None, parameters), count

    def _pairs(self, rows: Sequence[Row], parameters: tuple[Value, ...]) -> list[Pair]:
        """Each row with its outputs, which may have to wait for the order of the result."""
        project = self._project
        if self._late:
            return held_shared([(row, row) for row in part] for part in parts(rows))
        if len(rows) <= PART_ROWS_MIN:
            return weighed([(row, project(row, parameters)) for row in rows])
        return held([(row, project(row, parameters)) for row in part] for part in parts(rows))

    def _unique(self, pairs: Sequence[Pair], key_of: Callable[[Row], object]) -> Rows[Pair]:
        unique: dict[object, Pair] = {}
        weight = Weight()
        for part in parts(pairs):
            before = len(unique)
            for pair in part:
                unique.setdefault(key_of(pair[1]), pair)
            weight.add((len(unique) - before) * size_of(part) // len(part) if part else 0)
        found = held_shared(batches(unique.values()))
        drop(unique)
        return found

    async def _found(self, run: Run) -> list[Row]:
        keys = self.wanted(run.parameters) if self._key_columns else None
        if self.views.possible and self._may_use_views and not run.locks:
            rows = await self.views.rows(run, keys)
            if rows is not None:
                return rows
        started = time.perf_counter()
        rows = await self._reader.rows(run, keys)
        shard_count = run.execution.transaction.store.shard_count
        self.views.evaluated(len(rows), time.perf_counter() - started, shard_count)
        return rows

    def wanted(self, parameters: tuple[Value, ...]) -> Keys:
        """Every combination of the values that each key column may have."""
        choices: list[dict[Any, Any] | None] = [None] * len(self._key_columns)
        for place, values, key_of in self._keys:
            found = {}
            for value in values:
                breathe()
                given = value((), parameters)
                if given is not None:
                    found[key_of((given,))] = given
            before = choices[place]
            choices[place] = found if before is None else {key: each for key, each in before.items() if key in found}
        combined: list[tuple[Any, ...]] = [()]
        for choice in choices:
            assert choice is not None
            given_values = list(choice.values())
            combined = [(*row, value) for row in combined for part in parts(given_values) for value in part]
        return {self._key_of_values(values): values for part in parts(combined) for values in part}


def _compiled_prior(
    prior: Query | Recursion, readers: Readers, parts: Sequence[int]
) -> CompiledQuery | CompiledRecursion:
    if isinstance(prior, Query):
        return CompiledQuery(prior, readers, parts=parts)
    first, following = (CompiledQuery(each, readers, parts=parts) for each in (prior.first, prior.following))
    return CompiledRecursion(prior, first, following)


def _parts(query: Query | Recursion) -> list[int]:
    """How many stored tables each part of a query reads; those that read none are left out."""
    if isinstance(query, Recursion):
        return _parts(query.first) + _parts(query.following) * 2  # of which there is no end
    parts = [each for _, prior in query.prior for each in _parts(prior)]
    own = _stored_reads(query.node)
    return [*parts, own] if own else parts


def _stored_reads(node: Node) -> int:
    if isinstance(node, Base):
        return int(node.table >= 0)
    return sum(_stored_reads(each) for each in inputs_of(node))


def compile_select(select: Select | Query, division_errors: bool = False) -> CompiledSelect | CompiledQuery:
    if isinstance(select, Query):
        return CompiledQuery(select, division_errors=division_errors)
    return CompiledSelect(select, division_errors)


def compile_scan(select: Select) -> CompiledSelect | CompiledQuery:
    """A SELECT over one table, from a view where one pays: by key, or by a range that no index finds."""
    point = point_query(select)
    if point is not None:
        return CompiledQuery(point)
    scan = CompiledSelect(select)
    query = scanned_query(select)
    if query is None:
        return scan
    compiled = CompiledQuery(query, scan=scan)
    if not query.keys:
        compiled.views.uses_before_view = SCANS_BEFORE_VIEW
    return compiled if query.keys or compiled.views.is_ranged else scan
