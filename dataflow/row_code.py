"""What an operator does with single rows: for work that is taken apart, with several shards.

The same plans as the generated loops (`join_code`, `match_code`), one row at a time.
"""

from __future__ import annotations

from typing import Any

from dataflow.compile import compile_predicate, compile_row
from dataflow.eviction import part_of
from dataflow.join_shape import shape_of
from dataflow.key_tracing import column_at
from dataflow.node import Aggregate, Columns, Join, LeftJoin, SemiJoin, TopK, Union, source_column
from dataflow.operator import Operator
from dataflow.pipeline import Stage, lookups_of, pipeline_of
from dataflow.types import Row


class RowCode:
    """What an operator does with rows, as functions of single rows."""

    def __init__(self, operator: Operator) -> None:
        node = operator.node
        self.operator, self.node = operator, node
        self._types = [each.types for each in operator.inputs]
        self._width = [len(types) for types in self._types]
        self._predicates: dict[Any, Any] = {}
        self._stages: dict[int, list[Stage]] = {}
        self._parts: dict[int, tuple[int, int]] = {}
        outputs = node.outputs if isinstance(node, Join | LeftJoin) else None
        self._project = None if outputs is None else compile_row(outputs)
        if isinstance(node, LeftJoin | SemiJoin):
            self.right_of = dict(reversed(node.equalities))
            self.left_of = {right: left for left, right in reversed(node.equalities)}
            self.nulls: Row = (None,) * self._width[1]
            self._filter = None if node.filter is None else compile_predicate(node.filter)
            self._lookups = dict(lookups_of(node))

    def stages(self, start: int) -> list[Stage]:
        found = self._stages.get(start)
        if found is None:
            found = self._stages[start] = self._made_stages(start)
        return found

    def _made_stages(self, start: int) -> list[Stage]:
        assert isinstance(self.node, Join)
        pipeline = pipeline_of(self.node, start)
        stages = list(pipeline.stages)
        while pipeline.choice is not None:
            pipeline = pipeline.choice.alternatives[0]
            stages.extend(pipeline.stages)
        return stages

    def lookup_of(self, number: int) -> Columns:
        return self._lookups[number]

    def start_parts(self, number: int, columns: Columns, given: dict[int, object]) -> tuple[object, ...]:
        """The key parts of input columns where a fill starts, from those of the output columns."""
        node = self.node
        parts: dict[int, object] = {}
        for column, part in reversed(given.items()):
            inner: int | None = column
            if isinstance(node, Join):
                inner = column_at(node, number, column)
            elif isinstance(node, LeftJoin):
                inner = source_column(node.outputs, column)
            elif isinstance(node, Aggregate):
                inner = node.group[column]
            else:
                assert isinstance(node, SemiJoin | TopK | Union)
            if inner is not None:
                parts[inner] = part
        return tuple(parts[c] for c in columns)

    def _joined(self, rows: list[Row | None]) -> Row:
        return tuple(v for row, width in zip(rows, self._width, strict=True) for v in (row or (None,) * width))

    def part(self, rows: list[Row | None], position: int) -> object:
        found = self._parts.get(position)
        if found is None:
            assert isinstance(self.node, Join)
            shape = shape_of(self.node)
            found = self._parts[position] = (shape.input_of[position], shape.column(position))
        number, column = found
        row = rows[number]
        assert row is not None
        return part_of(self.operator.inputs[number], row, column)

    def passes(self, stage: Stage, rows: list[Row | None]) -> bool:
        for left, right in stage.checks:
            part = self.part(rows, left)
            if part is None or part != self.part(rows, right):
                return False
        if not stage.conditions:
            return True
        row = self._joined(rows)
        for condition in stage.conditions:
            test = self._predicates.get(condition)
            if test is None:
                test = self._predicates[condition] = compile_predicate(condition)
            if not test(row, ()):
                return False
        return True

    def is_match(self, left: Row, right: Row) -> bool:
        assert isinstance(self.node, LeftJoin | SemiJoin)
        for a, b in self.node.equalities:
            part = part_of(self.operator.inputs[0], left, a)
            if part is None or part != part_of(self.operator.inputs[1], right, b):
                return False
        return self._filter is None or bool(self._filter(left + right, ()))

    def output(self, rows: list[Row | None] | list[Row]) -> Row:
        row = self._joined(list(rows))
        return row if self._project is None else self._project(row, ())
