"""Left joins and semi joins: the left rows first, then the right ones by the left rows' keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backend.execution.evaluation.join_reader import CHUNK_ROWS
from backend.execution.evaluation.matching import RowMatch, pair_of
from backend.execution.evaluation.reader import (
    Conditions,
    Keys,
    Predicate,
    Run,
    conditions_of,
    finished,
    fulfilling,
    predicate_of,
    reads_only,
)
from backend.execution.pace import breathe, parts
from backend.execution.rows import Rows, drop, held, held_shared
from dataflow.expressions.compile import compile_row
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.expressions.rewriting import composed, moved
from dataflow.expressions.source import key_function
from dataflow.functions import is_volatile
from dataflow.plan.node import Columns, LeftJoin, SemiJoin, source_column
from dataflow.values.types import BOOLEAN, Row, Value

if TYPE_CHECKING:
    from backend.execution.evaluation.readers import Readers


class _Matching:
    """What both have in common: a reader of each side, and which right rows match a left one."""

    def __init__(
        self, readers: Readers, node: LeftJoin | SemiJoin, left_columns: Columns, left_conditions: Conditions
    ) -> None:
        width, right_width = len(node.left.types), len(node.right.types)
        types = node.left.types + node.right.types
        conditions: list[Expression] = list(conditions_of(node.filter))
        for left, right in node.equalities:
            sides = (Column(left, types[left]), Column(width + right, types[width + right]))
            conditions.append(Call("=", sides, BOOLEAN))
        here, there = frozenset(range(width)), frozenset(range(width, width + right_width))
        pairs = [(each, pair) for each in conditions if (pair := pair_of(each, here, there)) is not None]
        own = [each for each in conditions if reads_only(each, width, width + right_width)]
        before = [each for each in conditions if columns_of(each) <= here and not is_volatile(each)]
        taken = {id(each) for each in (*(each for each, _ in pairs), *own, *before)}
        self.before = predicate_of(before)
        self.both = predicate_of(each for each in conditions if id(each) not in taken)
        columns = tuple(sorted({p[1].index - width for _, p in pairs if isinstance(p[1], Column) and not p[2]}))
        self.match = RowMatch([pair for _, pair in pairs], width, readers.traced(node.right, columns))
        right_conditions = tuple(moved(each, {width + c: c for c in range(right_width)}) for each in own)
        self.right = readers.reader(node.right, self.match.columns, right_conditions)
        self.left = readers.reader(node.left, left_columns, left_conditions)
        self.right_width = right_width

    async def matches(self, run: Run, rows: Sequence[Row]) -> list[Sequence[Row]]:
        """The right rows of each left row, before `both`."""
        parameters, match = run.parameters, self.match
        asked = fulfilling(list(rows), self.before, parameters)
        if not asked:
            return [()] * len(rows)
        wanted = match.wanted(asked, parameters) if match.columns else None
        found = await self.right.rows(run, wanted)
        if match.pairs:
            index = match.index(found, parameters)
            matches: list[Sequence[Row]] = [
                index.get(key, ()) for part in parts(rows) for key in match.here(part, parameters)
            ]
        else:
            matches = [found] * len(rows)
        if self.before is not None:
            before: Predicate = self.before
            matches = [
                matches[place] if before(rows[place], parameters) else () for part in parts(range(len(rows))) for place in part
            ]
        return matches


class LeftJoinReader:
    def __init__(self, readers: Readers, node: LeftJoin, columns: Columns, where: Conditions) -> None:
        width = len(node.left.types)
        inner = [composed(each, node.outputs) for each in where]
        left = tuple(each for each in inner if reads_only(each, 0, width))
        self._after = predicate_of(each for each in inner if not reads_only(each, 0, width))
        sources: dict[int, int] = {}
        for column in columns:
            position = source_column(node.outputs, column)
            if position is not None and position < width:
                sources.setdefault(position, column)
        usable = readers.traced(node.left, tuple(sorted(sources)))
        self._key_places = tuple(columns.index(sources[each]) for each in usable)
        self._left_key = key_function(tuple(range(len(usable))), [node.left.types[each] for each in usable])
        self._has_keys = bool(usable)
        self._matching = _Matching(readers, node, usable, left)
        self._key_of = key_function(columns, node.types) if columns and len(usable) < len(columns) else None
        self._project = None if node.outputs is None else compile_row(node.outputs)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        return (held_shared if self._project is None else held)(await self.stream(run, keys))

    async def stream(self, run: Run, keys: Keys | None) -> Iterator[Sequence[Row]]:
        below: Keys | None = None
        if self._has_keys:
            assert keys is not None
            places, wanted = self._key_places, list(keys.values())
            shorter = [tuple([values[place] for place in places]) for part in parts(wanted) for values in part]
            below = {self._left_key(values): values for part in parts(shorter) for values in part}
        left = await self._matching.left.rows(run, below)
        joined = self._joined(left, await self._matching.matches(run, left), run.parameters)
        if self._after is None and self._project is None and (self._key_of is None or keys is None):
            return joined
        return finished(joined, run.parameters, self._after, self._project, self._key_of, keys)

    def _joined(self, left: Sequence[Row], matches: list[Sequence[Row]], parameters: Sequence[Value]) -> Iterator[Sequence[Row]]:
        """Each left row with its matches, or with NULLs, a few thousand at a time."""
        both, nothing = self._matching.both, (None,) * self._matching.right_width
        joined: list[Row] = []
        for row, found in zip(left, matches):
            is_alone = True
            for part in parts(found):
                if both is None:
                    some = [row + other for other in part]
                else:
                    some = [each for other in part if both(each := row + other, parameters)]
                is_alone = is_alone and not some
                joined += some
                if len(joined) >= CHUNK_ROWS:
                    yield joined
                    joined = []
            if is_alone:
                joined.append(row + nothing)
            breathe()
        drop(matches)
        yield joined


class SemiJoinReader:
    def __init__(self, readers: Readers, node: SemiJoin, columns: Columns, where: Conditions) -> None:
        self._negated = node.negated
        self._matching = _Matching(readers, node, columns, where)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        left = await self._matching.left.rows(run, keys)
        parameters, both, negated = run.parameters, self._matching.both, self._negated
        matches = await self._matching.matches(run, left)
        if both is None:
            places = parts(range(len(left)))
            return held_shared([left[place] for place in part if bool(matches[place]) is not negated] for part in places)
        out: Rows[Row] = Rows()
        for row, found in zip(left, matches):
            if any(both(row + other, parameters) for part in parts(found) for other in part) is not negated:
                out.add_shared([row])
            breathe()
        drop(matches)
        return out
