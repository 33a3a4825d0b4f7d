"""SELECT over at most one table: filter, group, project, order, limit.

Compiled once for a plan. Rows come from the store along the access path, or from memory for
tables that are not stored. Reading stops as soon as LIMIT is met, where the order of the
rows does not matter or is the order of the primary key anyway.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from backend.execution.access import Path, choose
from backend.execution.execution import Execution
from backend.execution.grouping import Grouping, row_key
from backend.execution.memory_account import size_of
from backend.execution.outcome import ResultSet, RowStream
from backend.execution.pace import parts
from backend.execution.reading import Found, find, lock_rows, row_decoder
from backend.execution.rows import Rows, Weight, drop, held, held_shared
from backend.execution.sorting import sort_rows
from controller.sql.chance import SEQUENCE
from controller.sql.locking import Locking
from controller.sql.plan import OrderItem, Select
from dataflow.comparison import sort_key
from dataflow.compile import compile_predicate, compile_row, compile_scalar
from dataflow.errors import Condition, InvalidStatement, Retryable
from dataflow.expression import Call, Column, Expression, walk
from dataflow.functions import is_volatile
from dataflow.functions.user_variables import ASSIGN
from dataflow.schema import Table
from dataflow.types import BLOBS, STRINGS, Row, SqlType, Value
from persistence.row_encoding import LaterFormat

SORT_BUFFER_ROWS_MIN = 4_000
STREAM_ROWS_MIN = 1_000
STREAM_BYTES_MIN = 1 << 20
"""A result with more is handed over while it is read; before, whatever fails can be tried again."""

Parameters = tuple[Value, ...]
Pair = tuple[Row, Row]
"""(the row that ORDER BY reads, the output row)"""


class Sorter:
    """ORDER BY as a few stable sorts, the last item first. An output that is left to chance is sorted by as it was drawn."""

    def __init__(self, items: Sequence[OrderItem], outputs: Sequence[Expression] = ()) -> None:
        self._passes = [
            (compile_scalar(item.expression), sort_key(item.expression.type), item.descending) for item in reversed(items)
        ]
        volatile = [is_volatile(item.expression) for item in reversed(items)]
        self._places = [
            outputs.index(item.expression) if drawn and item.expression in outputs else None
            for item, drawn in zip(reversed(items), volatile)
        ]
        self.reads_outputs = any(place is not None for place in self._places)
        self.is_fixed = not any(drawn and place is None for place, drawn in zip(self._places, volatile))
        """Sorted again, rows come in the same order."""

    def sort(self, pairs: list[Pair], parameters: Parameters) -> None:
        for (value, key, descending), place in zip(self._passes, self._places):
            if place is None:
                sort_rows(pairs, lambda pair: key(value(pair[0], parameters)), descending)  # noqa: B023
            else:
                sort_rows(pairs, lambda pair: key(pair[1][place]), descending)  # noqa: B023

    def sorted(self, found: list[tuple[Found, Row]], parameters: Parameters) -> list[tuple[Found, Row]]:
        for value, key, descending in self._passes:
            sort_rows(found, lambda pair: key(value(pair[1], parameters)), descending)  # noqa: B023
        return found


class Filter:
    """A WHERE over one table: where to look, and what to keep."""

    def __init__(self, table: Table, where: Expression | None) -> None:
        self.table = table
        self.path = choose(table, where)
        self.predicate = None if where is None else compile_predicate(where)
        self.decode = row_decoder(table)

    async def rows(
        self, execution: Execution, reverse: bool = False, locking: Locking | None = None, epoch: int = 0
    ) -> AsyncIterator[list[tuple[Found, Row]]]:
        """The rows that fulfil the WHERE, in chunks; `locking` and `epoch` as in `find`."""
        decode, predicate, parameters = self.decode, self.predicate, execution.parameters
        chunks = find(
            execution.transaction, self.table, self.path, parameters, reverse=reverse, locking=locking, epoch=epoch
        )
        async for chunk in chunks:
            for part in parts(chunk):
                decoded = [(found, decode(found[2])) for found in part]
                yield decoded if predicate is None else [pair for pair in decoded if predicate(pair[1], parameters)]


class CompiledSelect:
    def __init__(self, select: Select, division_errors: bool = False) -> None:
        self.select = select
        self.columns = select.columns
        is_stored = select.table is not None and select.table.id >= 0
        self._filter = Filter(select.table, select.where) if select.table is not None and is_stored else None
        if self._filter is not None:
            self._where = self._filter.predicate
        else:
            self._where = None if select.where is None else compile_predicate(select.where)
        grouped = bool(select.group_by or select.aggregates)
        self._grouping = Grouping(select.group_by, select.aggregates) if grouped else None
        self._having = None if select.having is None else compile_predicate(select.having)
        self.project = compile_row(select.outputs, division_errors)
        self.distinct = row_key([column.type for column in select.columns]) if select.distinct else None
        self.limit = None if select.limit is None else compile_scalar(select.limit)
        self.offset = None if select.offset is None else compile_scalar(select.offset)
        direction = None
        if select.table is not None and self._filter is not None and not grouped:
            direction = key_order(select.table, self._filter.path, select.order_by)
        self._reverse = direction is True
        self.sorter = Sorter(select.order_by, select.outputs) if select.order_by and direction is None else None
        self.late = is_late(select.outputs, select.distinct, self.sorter)

    async def run(self, execution: Execution) -> ResultSet:
        found = await self.stream(execution, False)
        assert isinstance(found, ResultSet)
        return found

    async def stream(self, execution: Execution, may_stream: bool = True) -> ResultSet | RowStream:
        """As `run`, but a large result comes while it is read, if its rows can be given as they are found."""
        select = self.select
        may_stream = may_stream and self.sorter is None and not select.locking and not select.count_found_rows
        may_stream = may_stream and not self.late
        output = _Output(self, execution.parameters)
        if self._grouping is not None:
            groups = self._grouping.groups()
            async for chunk in self._input(execution):
                groups.add(chunk, execution.parameters)
            output.add(groups.rows())
        elif output.stop != 0 or self.select.count_found_rows:
            source = self._input(execution, None if self.distinct or self.select.count_found_rows else output.stop)
            async for chunk in source:
                output.add(chunk)
                if output.is_full:
                    break
                if may_stream and output.is_large:
                    return RowStream(self.columns, self._rest(output, source), execution.warnings, output.skipped)
            await source.aclose()
        return output.result_set(execution)

    async def _rest(
        self, output: _Output, source: AsyncGenerator[list[Row], None]
    ) -> AsyncGenerator[list[Row], None]:
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

    def evaluate(self, rows: Sequence[Row], execution: Execution) -> ResultSet:
        """The same over rows that are in memory."""
        where, parameters = self._where, execution.parameters
        chosen = list(rows)
        if where is not None:
            chosen = [row for part in parts(rows) for row in part if where(row, parameters)]
        if self._grouping is not None:
            groups = self._grouping.groups()
            groups.add(chosen, parameters)
            chosen = groups.rows()
        output = _Output(self, parameters)
        output.add(chosen)
        return output.result_set(execution)

    async def _input(self, execution: Execution, stop: int | None = None) -> AsyncGenerator[list[Row], None]:
        """The rows that fulfil the WHERE, in chunks. No more than `stop` are locked, the first in order."""
        if self._filter is None:
            yield [()] if self._where is None or self._where((), execution.parameters) else []
            return
        if self.select.locking:
            async for chunk in self._locked(self._filter, execution, self.select.locking[0], stop):
                yield [row for _, row in chunk]
            return
        epoch = await execution.epoch() if execution.transaction.repeatable else 0
        async for chunk in self._filter.rows(execution, self._reverse, epoch=epoch):
            yield [row for _, row in chunk]

    async def _locked(
        self, filter_: Filter, execution: Execution, locking: Locking, stop: int | None
    ) -> AsyncIterator[list[tuple[Found, Row]]]:
        source = filter_.rows(execution, self._reverse, locking)
        if self.sorter is not None and stop is not None:
            everything: Rows[tuple[Found, Row]] = Rows()
            async for chunk in source:
                everything.add(chunk)
            source = _once(self.sorter.sorted(everything, execution.parameters))
        count = 0
        async for chunk in source:
            while chunk and count != stop:
                wanted = len(chunk) if stop is None else stop - count
                locked = await lock_rows(execution.transaction, chunk[:wanted], locking)
                chunk = chunk[wanted:]
                count += len(locked)
                yield locked
            if count == stop:
                break
        await source.aclose()  # type: ignore[attr-defined]

    def pairs(self, rows: Sequence[Row], parameters: Parameters) -> list[Pair]:
        having, project = self._having, self.project
        if having is not None:
            rows = [row for row in rows if having(row, parameters)]
        if self.late:
            return [(row, row) for row in rows]
        return [(row, project(row, parameters)) for row in rows]


class _Output:
    """Result rows as they come: distinct, in order, and no more of them than are wanted."""

    def __init__(self, select: CompiledSelect, parameters: Parameters) -> None:
        self._select = select
        self._parameters = parameters
        self._offset = 0 if select.offset is None else count_of(select.offset((), parameters))
        limit = None if select.limit is None else count_of(select.limit((), parameters))
        self.stop = None if limit is None else self._offset + limit
        self._pairs: Rows[Pair] = Rows()
        self._taken = 0
        self._bytes = 0
        # Where the outputs are computed only once the rows are in order, their length is not known before.
        self._large = [] if select.late else [number for number, column in enumerate(select.columns) if is_long(column.type)]
        self._seen: set[object] = set()
        self._seen_weight = Weight()
        self._count = 0
        self._buffer_max = SORT_BUFFER_ROWS_MIN + 4 * (self.stop or 0)

    @property
    def is_full(self) -> bool:
        if self.stop is None or self._select.select.count_found_rows:
            return False
        return self._select.sorter is None and self._taken + len(self._pairs) >= self.stop

    @property
    def is_large(self) -> bool:
        return len(self._pairs) - self._offset > STREAM_ROWS_MIN or self._bytes > STREAM_BYTES_MIN

    def skipped(self) -> int:
        """How many rows OFFSET has left out, of those that were taken."""
        return min(self._offset, self._taken)

    def taken(self) -> list[Row]:
        """The rows that were added since, where they come in their order."""
        start = max(self._offset - self._taken, 0)
        stop = None if self.stop is None else max(self.stop - self._taken, 0)
        rows = [output for _, output in self._pairs[start:stop]]
        self._taken += len(self._pairs)
        self._pairs = Rows()
        return rows

    def add(self, rows: list[Row]) -> None:
        for part in parts(rows):
            self._add(part)

    def _add(self, rows: Sequence[Row]) -> None:
        pairs = self._select.pairs(rows, self._parameters)
        key = self._select.distinct
        if key is not None:
            pairs = [pair for pair in pairs if self._is_new(key(pair[1]))]
            self._seen_weight.add(size_of(pairs))
        self._pairs.add(pairs)
        for place in self._large:
            self._bytes += sum([len(output[place]) for _, output in pairs if output[place] is not None])  # type: ignore[misc, arg-type]
        self._count += len(pairs)
        sorter = self._select.sorter
        if self.stop is not None and len(self._pairs) > self._buffer_max and (sorter is None or sorter.is_fixed):
            self._sort()
            first: Rows[Pair] = Rows()
            first.add(self._pairs[: self.stop])
            self._pairs = first

    def _is_new(self, key: object) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _sort(self) -> None:
        if self._select.sorter is not None:
            self._select.sorter.sort(self._pairs, self._parameters)

    def result_set(self, execution: Execution) -> ResultSet:
        self._sort()
        drop(self._seen)
        wanted = self._pairs[self._offset : self.stop]
        if self._select.late:
            project, parameters = self._select.project, self._parameters
            rows = held([project(row, parameters) for _, row in part] for part in parts(wanted))
        else:
            rows = held_shared([output for _, output in part] for part in parts(wanted))
        found_rows = self._count if self._select.select.count_found_rows else None
        if self._offset and self.stop is not None and found_rows is None:
            # Those that were skipped count, unless nothing is wanted at all.
            found_rows = min(len(self._pairs), self.stop) if self.stop > self._offset else 0
        return ResultSet(self._select.columns, rows, execution.warnings(), found_rows)


async def _once(rows: list[tuple[Found, Row]]) -> AsyncIterator[list[tuple[Found, Row]]]:
    yield rows


def count_of(value: Value) -> int:
    """The number of a LIMIT or OFFSET."""
    if isinstance(value, int) and value >= 0:
        return value
    raise InvalidStatement(Condition.WRONG_ARGUMENTS, "LIMIT")


def key_order(table: Table, path: Path, order_by: Sequence[OrderItem]) -> bool | None:
    """Whether reading by primary key gives the order: False if forward, True if in reverse, None if not."""
    if path.index is not table.primary_key or len(order_by) > len(path.index.parts):
        return None
    positions = {column.id: position for position, column in enumerate(table.columns)}
    directions = set()
    for item, part in zip(order_by, path.index.parts):
        expression = item.expression
        if not isinstance(expression, Column) or expression.index != positions[part.column_id] or part.prefix is not None:
            return None
        directions.add(item.descending != part.descending)
    return directions.pop() if len(directions) == 1 else None



def is_long(type_: SqlType) -> bool:
    """Whether one value may be as large as many rows."""
    return type_.kind in STRINGS | BLOBS and (type_.length is None or type_.length > 255)


def is_late(outputs: Sequence[Expression], distinct: bool, sorter: Sorter | None) -> bool:
    """Whether the outputs are to be computed in the order of the result, one after the other."""
    if distinct or (sorter is not None and sorter.reads_outputs):
        return False
    return any(isinstance(each, Call) and each.function in (ASSIGN, SEQUENCE) for output in outputs for each in walk(output))
