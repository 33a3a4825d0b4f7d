"""Recursive common table expressions: asked round by round, each for the rows of the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backend.execution.answering.result import count_of, row_key
from backend.execution.execution import Execution
from backend.execution.pace import breathe, parts
from backend.execution.rows import Rows
from controller.sql.plan import OutputColumn, Recursion
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import compile_scalar
from dataflow.values.types import TEXTS, Row


class Asked(Protocol):
    async def rows(self, execution: Execution, memory: Mapping[int, Sequence[Row]]) -> tuple[list[Row], int]: ...


class CompiledRecursion:
    def __init__(self, recursion: Recursion, first: Asked, following: Asked) -> None:
        self._recursion = recursion
        self._first, self._following = first, following
        columns = recursion.first.columns
        self._key = row_key([each.type for each in columns]) if recursion.distinct else None
        self._limit = None if recursion.limit is None else compile_scalar(recursion.limit)
        self._offset = None if recursion.offset is None else compile_scalar(recursion.offset)
        self._bounded = [
            (place, each, each.type.length)
            for place, each in enumerate(columns)
            if each.type.kind in TEXTS and each.type.length is not None
        ]

    async def rows(self, execution: Execution, memory: Mapping[int, Sequence[Row]]) -> tuple[list[Row], int]:
        start = 0 if self._offset is None else count_of(self._offset((), execution.parameters))
        stop = None if self._limit is None else start + count_of(self._limit((), execution.parameters))
        seen: dict[Any, None] = {}
        found: Rows[Row] = Rows()
        depth = 0
        new = self._unseen((await self._first.rows(execution, memory))[0], seen)
        while new and (stop is None or len(found) + len(new) < stop):
            found.add(new)
            depth += 1
            if depth > self._recursion.depth_max:
                raise InvalidStatement(Condition.CTE_DEPTH, depth)
            rows, _ = await self._following.rows(execution, {**memory, self._recursion.table: new})
            numbered = enumerate(rows, 1)
            fitting = [self._fitting(row, number, execution) for part in parts(rows) for _, (number, row) in zip(part, numbered)]
            new = self._unseen(fitting, seen)
        found.add(new)
        return found if start == 0 and stop is None else found[start:stop], len(found)

    def _unseen(self, rows: list[Row], seen: dict[Any, None]) -> list[Row]:
        if self._key is None:
            return rows
        new: list[Row] = []
        for row in rows:
            breathe()
            key = self._key(row)
            if key not in seen:
                seen[key] = None
                new.append(row)
        return new

    def _fitting(self, row: Row, number: int, execution: Execution) -> Row:
        """Texts no longer than those of the first part: its types are those of the columns."""
        for place, column, length in self._bounded:
            value = row[place]
            if isinstance(value, str) and len(value) > length:
                row = self._cut(row, place, column, length, number, execution)
        return row

    def _cut(
        self, row: Row, place: int, column: OutputColumn, length: int, number: int, execution: Execution
    ) -> Row:
        if execution.modes.strict:
            raise InvalidStatement(Condition.DATA_TOO_LONG, column.name, number)
        execution.warn(Condition.DATA_TRUNCATED, column.name, number)
        value = row[place]
        assert isinstance(value, str)
        return (*row[:place], value[:length], *row[place + 1 :])
