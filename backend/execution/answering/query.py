"""Any SELECT: its node's rows by key, from a view or evaluated from the base tables, then what follows them.

All that a statement shows is of one moment. A view is, and so is what is read as of one epoch; but
a view may be ahead of that epoch, so a query with several parts that read stored tables, such as a
recursive one, uses no views.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any

from backend.execution.answering.decision import (
    CHANGE_PART_PASSES,
    CHANGE_PASSES,
    PART_PASSES,
    Decision,
    Pass,
    decide,
)
from backend.execution.answering.ordering import Sorter
from backend.execution.answering.result import Finish, ResultRows
from backend.execution.answering.viewing import QueryViews
from backend.execution.evaluation.by_column import ColumnAggregate, ColumnFirstRows, column_first_rows
from backend.execution.evaluation.by_spark import BySpark
from backend.execution.evaluation.document_rows import CompiledDocuments
from backend.execution.evaluation.reader import Keys, Reader, Run, conditions_of, unwrapped
from backend.execution.evaluation.readers import Readers
from backend.execution.evaluation.recursion import CompiledRecursion
from backend.execution.evaluation.scan import TableScan
from backend.execution.execution import Execution
from backend.execution.outcome import ResultSet, RowStream
from backend.execution.pace import PARAMETER_LENGTH, aside, breathe, parts
from controller.sql.plan import DocumentRows, Query, Recursion
from controller.sql.text.depth import deeply
from dataflow.errors import Condition, Retryable
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Expression, parameters_of
from dataflow.expressions.source import key_function
from dataflow.plan.node import Base, Node, inputs_of
from dataflow.values.types import Row, Value
from persistence.row_encoding import LaterFormat

SCANNED_ROWS_MAX = 2_000
"""A result of one table with more rows than this is read from it, not kept in a view."""
SCANS_AFTER_LARGE = 50
"""So many times a query is evaluated after such a result, before a view is tried again."""


class CompiledQuery:
    def __init__(
        self,
        decision: Decision,
        readers: Readers | None = None,
        division_errors: bool = False,
        parts: Sequence[int] = (),
        part_passes: tuple[Pass, ...] = PART_PASSES,
    ) -> None:
        """`division_errors`: what is selected may not come from a division by zero.

        `parts` are how many stored tables each part of the statement reads, if this is one of several.
        """
        query = decision.query
        self.decision = decision
        self.query = query
        self.effort = 0
        """How long it takes to make what is made when it is first needed; see `controller.sql.planner.effort`."""
        self.columns = query.columns
        self._scan = _Scan(decision.one, division_errors) if decision.scans and decision.one is not None else None
        self._scans_only = 0
        self._readers = readers or Readers({table.id: table for table in query.tables if table.id >= 0})
        parts = parts or _parts(query)
        self._alone = sum(parts) <= 1
        self._prior = [(table, _compiled_prior(each, self._readers, parts, part_passes)) for table, each in query.prior]
        self.key_columns = tuple(sorted({key.column for key in query.keys}))
        types = query.node.types
        self._keys = [
            (
                self.key_columns.index(key.column),
                [compile_scalar(value) for value in key.values],
                key_function((0,), [types[key.column]]),
            )
            for key in query.keys
        ]
        self._key_of_values = key_function(
            tuple(range(len(self.key_columns))), [types[each] for each in self.key_columns]
        )
        self.views: QueryViews | None = None
        if decision.has_view and len(parts) <= 1:
            self.views = QueryViews(query, self.key_columns, decision.uses_before_view, decision.scans)
        self._division_errors = division_errors

    @cached_property
    def _reader(self) -> Reader:
        """The node's rows from the base tables."""
        # Whether there is a row at all decides on the default, before the filter does.
        conditions = conditions_of(self.query.filter) if self.query.default is None else ()
        return self._readers.reader(self.query.node, self.key_columns, conditions)

    @cached_property
    def _first_rows(self) -> ColumnFirstRows | None:
        """The rows that LIMIT may show, if it is read which of them are the first."""
        query = self.query
        if query.limit is None or not query.order_by or query.distinct or query.windows or query.count_found_rows or query.default is not None:
            return None
        table = next((each for each in query.tables if isinstance(query.node, Base) and each.id == query.node.table), None)
        if table is None or table.id < 0:
            return None
        return column_first_rows(self._reader, query.node, table, query.filter, query.order_by, self.key_columns)

    @cached_property
    def _by_spark(self) -> BySpark:
        return BySpark(self.query, self.key_columns)

    def way(self, parameters: tuple[Value, ...], spark_rows: int | None) -> str:
        """How it is evaluated where no view answers, in words; `spark_rows` is as in `DataJobs`, None without Spark."""
        reader = self._first_rows or unwrapped(self._reader)
        why = "it is not groups or first rows of one table that is read as a whole"
        if isinstance(reader, ColumnAggregate | ColumnFirstRows):
            why = reader.obstacle(parameters)
        if not why:
            return "by column"
        if spark_rows is None or self._first_rows is not None:
            return f"by rows: {why}"
        obstacle = "locked rows" if self.query.locking else self._by_spark.obstacle(parameters)
        return f"by rows: {why}; not by Spark: {obstacle}" if obstacle else f"by Spark if more than {spark_rows} rows of a table are read, else by rows"

    @cached_property
    def _finish(self) -> Finish:
        query = self.query
        sorter = Sorter(query.order_by, query.outputs) if query.order_by else None
        return Finish(query, sorter, self._division_errors)

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
        if self.views is None or not self.views.folds_filter:
            given.append(query.filter)
        return [each for each in given if each is not None]

    @property
    def places_read(self) -> tuple[int, ...]:
        """The parameters that what is made of the node's rows depends on."""
        return tuple(sorted({place for each in self.finishing for place in parameters_of(each)}))

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
            rows, count = self._finish.finished(found, execution.parameters)
        found_rows = None if self.query.limit is None else count
        return ResultSet(self.columns, rows, execution.warnings(), found_rows, execution.from_view)

    async def _viewed(self, run: Run) -> list[Row] | None:
        """The rows from a view, unless the last result was so large that it is better not kept."""
        if self.views is None:
            return None
        if self._scans_only:
            self._scans_only -= 1
            return None
        found = await self.views.rows(run, self.wanted(run.parameters) if self.key_columns else None)
        if found is not None and len(found) > SCANNED_ROWS_MAX:
            self._scans_only = SCANS_AFTER_LARGE
        run.execution.from_view = found is not None
        return found

    async def _scanned(self, scan: _Scan, execution: Execution, may_stream: bool) -> ResultSet | RowStream:
        found = await scan.stream(execution, may_stream)
        if not isinstance(found, ResultSet) or len(found.rows) > SCANNED_ROWS_MAX:
            self._scans_only = SCANS_AFTER_LARGE
        return found

    async def rows(self, execution: Execution, memory: Mapping[int, Sequence[Row]]) -> tuple[list[Row], int]:
        """The result, and what FOUND_ROWS() is after it; `memory` are tables that exist only now."""
        breathe()
        if self._prior:
            memory = dict(memory)
            for table, query in self._prior:
                memory[table], _ = await query.rows(execution, memory)
        found = await self._found(Run(execution, memory, self.query.locking, self._alone))
        return self._finish.finished(found, execution.parameters)

    def finished(self, rows: Sequence[Row], parameters: tuple[Value, ...]) -> tuple[list[Row], int]:
        """The result that the node's rows make, and what FOUND_ROWS() is after it."""
        return self._finish.finished(rows, parameters)

    async def _found(self, run: Run) -> list[Row]:
        keys = self.wanted(run.parameters) if self.key_columns else None
        if self.views is not None:
            rows = await self.views.rows(run, keys)
            if rows is not None:
                run.execution.from_view = True
                return rows
        if "_reader" not in self.__dict__:  # it is made when it is first needed, which takes long for long lists
            effort = max(self.effort, PARAMETER_LENGTH * len(run.parameters))
            aside(effort, lambda: deeply(lambda: (self._reader, self._finish)))
        stop = self._finish.bounds(run.parameters)[1] if self._first_rows is not None else None
        if self._first_rows is not None and stop is not None:
            rows, count = await self._first_rows.rows(run, keys, stop)
        else:
            rows = await self._by_spark.rows(run, keys, self._reader)
            count = len(rows)
        if self.views is not None:
            self.views.evaluated(count)
        return rows

    def wanted(self, parameters: tuple[Value, ...]) -> Keys:
        """Every combination of the values that each key column may have."""
        choices: list[dict[Any, Any] | None] = [None] * len(self.key_columns)
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


class _Scan:
    """A SELECT over one stored table whose rows are read as they are found."""

    def __init__(self, one: Query, division_errors: bool) -> None:
        assert one.table is not None
        self._columns = one.columns
        self._locking = next((each for each in one.locking if each.tables is None or one.table.id in each.tables), None)
        self._table = TableScan(one.table, one.filter, one.order_by, one.outputs)
        self._finish = Finish(one, self._table.sorter, division_errors)
        plain = self._table.sorter is None and not one.locking and not one.count_found_rows
        self._may_stream = plain and not self._finish.late
        self._has_limit = one.limit is not None

    async def stream(self, execution: Execution, may_stream: bool) -> ResultSet | RowStream:
        output = ResultRows(self._finish, execution.parameters)
        counts_all = self._finish.counts_all
        if output.stop != 0 or counts_all:
            source = self._rows(execution, None if self._finish.distinct or counts_all else output.stop)
            async for chunk in source:
                output.add(chunk)
                if output.is_full:
                    break
                if may_stream and self._may_stream and output.is_large:
                    return RowStream(self._columns, _rest(output, source), execution.warnings, output.skipped)
            await source.aclose()
        rows, count = output.result()
        return ResultSet(self._columns, rows, execution.warnings(), count if self._has_limit else None)

    async def _rows(self, execution: Execution, stop: int | None) -> AsyncGenerator[list[Row], None]:
        """The rows that fulfil the WHERE, in chunks. No more than `stop` are locked, the first in order."""
        if self._locking is not None:
            source = self._table.locked(execution, self._locking, stop)
        else:
            epoch = await execution.epoch() if execution.transaction.repeatable else 0
            source = self._table.rows(execution, epoch=epoch)
        async for chunk in source:
            yield [row for _, row in chunk]


async def _rest(output: ResultRows, source: AsyncGenerator[list[Row], None]) -> AsyncGenerator[list[Row], None]:
    """What has been found so far, and then the rows of `source`."""
    async with aclosing(source):
        try:
            yield output.taken()
            while not output.is_full and (chunk := await anext(source, None)) is not None:
                output.add(chunk)
                if rows := output.taken():
                    yield rows
        except LaterFormat:  # a row from after a change of its table that we had not heard of in time
            raise Retryable(Condition.TABLE_DEFINITION_CHANGED) from None


def compile_query(query: Query, effort: int = 0) -> CompiledQuery:
    found = CompiledQuery(decide(query))
    found.effort = effort
    return found


def compile_read(query: Query, division_errors: bool = False) -> CompiledQuery:
    """The SELECT of a statement that changes rows."""
    return CompiledQuery(decide(query, CHANGE_PASSES), division_errors=division_errors, part_passes=CHANGE_PART_PASSES)


def _compiled_prior(
    prior: Query | Recursion | DocumentRows, readers: Readers, parts: Sequence[int], passes: tuple[Pass, ...]
) -> CompiledQuery | CompiledRecursion | CompiledDocuments:
    def compiled(part: Query) -> CompiledQuery:
        return CompiledQuery(decide(part, passes), readers, parts=parts, part_passes=passes)

    if isinstance(prior, Query):
        return compiled(prior)
    if isinstance(prior, DocumentRows):
        return CompiledDocuments(prior, compiled(prior.documents))
    return CompiledRecursion(prior, compiled(prior.first), compiled(prior.following))


def _parts(query: Query | Recursion | DocumentRows) -> list[int]:
    """How many stored tables each part of a query reads; those that read none are left out."""
    if isinstance(query, DocumentRows):
        return _parts(query.documents)
    if isinstance(query, Recursion):
        return _parts(query.first) + _parts(query.following) * 2  # of which there is no end
    parts = [each for _, prior in query.prior for each in _parts(prior)]
    own = _stored_reads(query.node)
    return [*parts, own] if own else parts


def _stored_reads(node: Node) -> int:
    if isinstance(node, Base):
        return int(node.table >= 0)
    return sum(_stored_reads(each) for each in inputs_of(node))
