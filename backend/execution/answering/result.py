"""The result of a query from its node's rows: windows, outputs, DISTINCT, ORDER BY, LIMIT.

`Finish` is compiled once for a plan. Rows can be given to an `ResultRows` bit by bit: it keeps no more of them than
LIMIT may show, says when it has enough, and hands over what is final where rows come in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.execution.answering.ordering import Pair, Sorter
from backend.execution.answering.window import CompiledWindow
from backend.execution.evaluation.reader import fulfilling, projected
from backend.execution.memory_account import size_of
from backend.execution.pace import PART_ROWS_MIN, parts
from backend.execution.rows import Rows, Weight, drop, held_shared, weighed
from controller.sql.expressions.chance import SEQUENCE
from controller.sql.plan import Query
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import compile_predicate, compile_row, compile_scalar
from dataflow.expressions.expression import Call, Expression, walk
from dataflow.functions.user_variables import ASSIGN
from dataflow.values.comparison import group_key
from dataflow.values.types import BLOBS, STRINGS, Row, SqlType, Value

SORT_BUFFER_ROWS_MIN = 4_000
STREAM_ROWS_MIN = 1_000
STREAM_BYTES_MIN = 1 << 20
"""A result with more is handed over while it is read; before, whatever fails can be tried again."""

Parameters = tuple[Value, ...]


class Finish:
    """`sorter` is None where rows come in the order of the result by themselves."""

    def __init__(self, query: Query, sorter: Sorter | None, division_errors: bool = False) -> None:
        self.counts_all = query.count_found_rows
        self._default = query.default
        # Whether there is a row at all decides on the default, before the filter does.
        has_filter = query.filter is not None and query.default is not None
        self._filter = compile_predicate(query.filter) if has_filter and query.filter is not None else None
        self._windows = [CompiledWindow(each) for each in query.windows]
        self.project = compile_row(query.outputs, division_errors)
        self.sorter = sorter
        self.distinct = row_key([each.type for each in query.outputs]) if query.distinct else None
        self._limit = None if query.limit is None else compile_scalar(query.limit)
        self._offset = None if query.offset is None else compile_scalar(query.offset)
        self.late = _is_late(query.outputs, query.distinct, sorter)
        self.long_outputs = [number for number, each in enumerate(query.outputs) if _is_long(each.type)]

    def bounds(self, parameters: Parameters) -> tuple[int, int | None]:
        """Which of the rows are wanted, by their number: from the first up to the second."""
        start = 0 if self._offset is None else count_of(self._offset((), parameters))
        return start, None if self._limit is None else start + count_of(self._limit((), parameters))

    def finished(self, rows: Sequence[Row], parameters: Parameters) -> tuple[list[Row], int]:
        """The result that the node's rows make, and what FOUND_ROWS() is after it."""
        if self._default is not None:
            rows = fulfilling(list(rows) or [self._default], self._filter, parameters)
        if self._windows:
            columns = [each.values(rows, parameters) for each in self._windows]
            values = zip(*columns)
            rows = held_shared([row + next(values) for row in part] for part in parts(rows))
        output = ResultRows(self, parameters)
        output.add(rows)
        return output.result()


class ResultRows:
    """Result rows as they come: distinct, in order, and no more of them than are wanted."""

    def __init__(self, finish: Finish, parameters: Parameters) -> None:
        self._finish = finish
        self._parameters = parameters
        self._start, self.stop = finish.bounds(parameters)
        self._pairs: list[Pair] = []
        self._taken = 0
        self._bytes = 0
        self._seen: set[object] = set()
        self._seen_weight = None if finish.distinct is None else Weight()
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether no row that comes later would be shown, or counted."""
        if self.stop is None or self._finish.counts_all or self._finish.sorter is not None:
            return False
        return self._taken + len(self._pairs) >= self.stop

    @property
    def is_large(self) -> bool:
        return len(self._pairs) - self._start > STREAM_ROWS_MIN or self._bytes > STREAM_BYTES_MIN

    def skipped(self) -> int:
        """How many rows OFFSET has left out, of those that were taken."""
        return min(self._start, self._taken)

    def taken(self) -> list[Row]:
        """The rows that were added since, where they come in their order."""
        start = max(self._start - self._taken, 0)
        stop = None if self.stop is None else max(self.stop - self._taken, 0)
        rows = [output for _, output in self._pairs[start:stop]]
        self._taken += len(self._pairs)
        self._pairs = []
        return rows

    def add(self, rows: Sequence[Row]) -> None:
        if len(rows) <= PART_ROWS_MIN and not self._pairs:
            self._pairs = weighed(self._new(rows))  # the quick way for most results
            return
        if not isinstance(self._pairs, Rows):
            few, self._pairs = self._pairs, Rows()
            self._pairs.add(few)
        for part in parts(rows):
            assert isinstance(self._pairs, Rows)
            self._pairs.add(self._new(part))
            self._cut()

    def _new(self, rows: Sequence[Row]) -> list[Pair]:
        """Each row with its outputs, which may have to wait for the order of the result."""
        finish, parameters = self._finish, self._parameters
        if finish.late:
            pairs = [(row, row) for row in rows]
        else:
            project = finish.project
            pairs = [(row, project(row, parameters)) for row in rows]
        if finish.distinct is not None:
            pairs = self._unseen(pairs, finish.distinct)
        if finish.long_outputs and not finish.late:
            for place in finish.long_outputs:
                self._bytes += sum([len(output[place]) for _, output in pairs if output[place] is not None])  # type: ignore[misc, arg-type]
        self._count += len(pairs)
        return pairs

    def _unseen(self, pairs: list[Pair], key_of: Callable[[Row], object]) -> list[Pair]:
        assert self._seen_weight is not None
        seen, new = self._seen, []
        for pair in pairs:
            key = key_of(pair[1])
            if key not in seen:
                seen.add(key)
                new.append(pair)
        self._seen_weight.add(size_of(new))
        return new

    def _cut(self) -> None:
        """Let go of rows that LIMIT will not show."""
        sorter = self._finish.sorter
        if self.stop is None or len(self._pairs) <= SORT_BUFFER_ROWS_MIN + 4 * self.stop:
            return
        if sorter is not None and not sorter.is_fixed:
            return
        self._sort()
        first: Rows[Pair] = Rows()
        first.add(self._pairs[: self.stop])
        self._pairs = first

    def _sort(self) -> None:
        if self._finish.sorter is not None:
            self._finish.sorter.sort(self._pairs, self._parameters)

    def result(self) -> tuple[list[Row], int]:
        """All rows of the result, and what FOUND_ROWS() is after it."""
        finish, start, stop = self._finish, self._start, self.stop
        self._sort()
        drop(self._seen)
        wanted = self._pairs[start:stop] if start or stop is not None else self._pairs
        if len(wanted) <= PART_ROWS_MIN:
            rows = [output for _, output in wanted]
        else:
            rows = held_shared([output for _, output in part] for part in parts(wanted))
        # Those that OFFSET has skipped count, those after LIMIT only if the statement says so.
        count = self._count
        if stop is not None and not finish.counts_all:
            count = min(stop, count) if stop > start else 0
        return projected(rows, finish.project if finish.late else None, self._parameters), count


def count_of(value: Value) -> int:
    """The number of a LIMIT or OFFSET."""
    if isinstance(value, int) and value >= 0:
        return value
    raise InvalidStatement(Condition.WRONG_ARGUMENTS, "LIMIT")


def row_key(types: Sequence[SqlType]) -> Callable[[Row], object]:
    """Equal for rows that GROUP BY and DISTINCT take for the same."""
    keys = [group_key(type_) for type_ in types]
    if all(key is None for key in keys):
        return lambda row: row
    return lambda row: tuple([value if key is None else key(value) for key, value in zip(keys, row)])


def _is_long(type_: SqlType) -> bool:
    """Whether one value may be as large as many rows."""
    return type_.kind in STRINGS | BLOBS and (type_.length is None or type_.length > 255)


def _is_late(outputs: Sequence[Expression], distinct: bool, sorter: Sorter | None) -> bool:
    """Whether the outputs are to be computed in the order of the result, one after the other."""
    if distinct or (sorter is not None and sorter.reads_outputs):
        return False
    return any(isinstance(each, Call) and each.function in (ASSIGN, SEQUENCE) for output in outputs for each in walk(output))
