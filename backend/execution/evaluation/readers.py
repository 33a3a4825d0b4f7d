"""The readers of one statement, compiled from its nodes; equal ones are the same object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend.execution.evaluation.base_reader import MemoryReader, TableReader, table_rank
from backend.execution.evaluation.by_column import column_aggregate
from backend.execution.evaluation.group_reader import AggregateReader, TopKReader, about
from backend.execution.evaluation.join_reader import JoinReader
from backend.execution.evaluation.match_reader import LeftJoinReader, SemiJoinReader
from backend.execution.evaluation.reader import (
    Chosen,
    Conditions,
    Kept,
    Keys,
    Reader,
    Run,
    conditions_of,
    taken,
)
from backend.execution.pace import parts
from backend.execution.rows import Rows
from dataflow.expressions.expression import Expression, columns_of
from dataflow.expressions.rewriting import composed, moved
from dataflow.plan.join_shape import shape_of
from dataflow.plan.key_tracing import traced
from dataflow.plan.node import (
    Aggregate,
    Base,
    Columns,
    Join,
    LeftJoin,
    Node,
    SemiJoin,
    TopK,
    Union,
    source_column,
)
from dataflow.schema import Table
from dataflow.values.types import Row

FULL = 8
"""The rank of reading everything."""


class UnionReader:
    def __init__(self, readers: Readers, node: Union, columns: Columns, conditions: Conditions) -> None:
        self._inputs = [readers.reader(each, columns, conditions) for each in node.inputs]

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        out: Rows[Row] = Rows()
        for each in self._inputs:
            for part in parts(await taken(each, run, keys)):
                out.add(part)
        return out


class Readers:
    """`tables` are the stored tables by id; others are in memory when the statement runs."""

    def __init__(self, tables: Mapping[int, Table]) -> None:
        self._tables = tables
        self._made: dict[tuple[Node, Columns, Conditions], Reader] = {}

    def reader(self, node: Node, columns: Columns, conditions: Conditions) -> Reader:
        """`columns` are ascending; see `backend.execution.evaluation.reader` for what is promised."""
        name = (node, columns, conditions)
        found = self._made.get(name)
        if found is None:
            found = self._make(node, columns, conditions)
            if not columns:
                found = Kept(found)
            self._made[name] = found
        if isinstance(found, Kept):
            found.consumers += 1
        return found

    def traced(self, node: Node, columns: Columns) -> Columns:
        """The columns by which keys can be handed down."""
        return traced(node, columns) if columns else ()

    def _make(self, node: Node, columns: Columns, conditions: Conditions) -> Reader:
        match node:
            case Base():
                table = self._tables.get(node.table)
                if table is None:
                    return MemoryReader(node.table, node.types, columns, conditions)
                return TableReader(table, columns, conditions)
            case Join():
                return JoinReader(self, node, columns, conditions)
            case LeftJoin():
                return LeftJoinReader(self, node, columns, conditions)
            case SemiJoin():
                usable = self.traced(node.left, columns)
                inner = SemiJoinReader(self, node, usable, conditions)
                return inner if usable == columns else Chosen(inner, usable, columns, node.types, ())
            case Union():
                return UnionReader(self, node, columns, conditions)
            case Aggregate():
                usable = tuple(each for each in columns if each < len(node.group))
                mine, rest = about(conditions, range(len(node.group)))
                by_rows = AggregateReader(self, node, usable, mine)
                return self._chosen(column_aggregate(by_rows, self._tables, node, usable, mine), node, usable, columns, rest)
            case TopK():
                usable = tuple(each for each in columns if each in node.partition)
                mine, rest = about(conditions, node.partition)
                return self._chosen(TopKReader(self, node, usable, mine), node, usable, columns, rest)

    def _chosen(self, inner: Reader, node: Node, usable: Columns, columns: Columns, rest: Conditions) -> Reader:
        if usable == columns and not rest:
            return inner
        return Chosen(inner, usable, columns, node.types, rest)

    # -- how much is read

    def rank(self, node: Node, columns: Columns, conditions: Conditions) -> int:
        """How much is read by these keys and conditions, from 0 (at most one row each) to FULL."""
        match node:
            case Base():
                table = self._tables.get(node.table)
                return table_rank(table, columns, conditions) if table is not None else (4 if columns else 5)
            case Join():
                return self._join_rank(node, columns, conditions)
            case LeftJoin():
                width = len(node.left.types)
                inner = [composed(each, node.outputs) for each in conditions]
                sources = {source_column(node.outputs, each) for each in columns}
                return self.rank(
                    node.left,
                    tuple(sorted(each for each in sources if each is not None and each < width)),
                    tuple(each for each in inner if columns_of(each) and max(columns_of(each)) < width),
                )
            case SemiJoin():
                return self.rank(node.left, columns, conditions)
            case Aggregate():
                if not node.group:
                    return 0
                mine, _ = about(conditions, range(len(node.group)))
                places = dict(enumerate(node.group))
                inner_columns = tuple(sorted({places[each] for each in columns if each < len(node.group)}))
                return self.rank(node.input, inner_columns, tuple(moved(each, places) for each in mine))
            case TopK():
                if not node.partition:
                    return 1
                return self.rank(node.input, tuple(each for each in columns if each in node.partition), ())
            case Union():
                return max(self.rank(each, columns, conditions) for each in node.inputs)

    def _join_rank(self, node: Join, columns: Columns, conditions: Conditions) -> int:
        shape = shape_of(node)
        given: Sequence[Expression] = [
            *(composed(each, node.outputs) for each in conditions),
            *conditions_of(node.filter),
        ]
        best = FULL
        for number, each in enumerate(node.inputs):
            low, high = shape.offsets[number], shape.offsets[number] + shape.width(number)
            places = {position: position - low for position in range(low, high)}
            own = tuple(moved(c, places) for c in given if columns_of(c) and columns_of(c) <= places.keys())
            found = set()
            for column in columns:
                position = source_column(node.outputs, column)
                inner = None if position is None else shape.column_in(number, position)
                if inner is not None:
                    found.add(inner)
            best = min(best, self.rank(each, tuple(sorted(found)), own))
        return best
