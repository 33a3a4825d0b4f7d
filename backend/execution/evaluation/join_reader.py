"""Inner joins of any number of inputs: from the most restricted one on, each next by the keys found.

The order is fixed when the plan is compiled, from which columns have indexes; there are no
statistics. Conditions are applied as soon as all that they read is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from backend.execution.evaluation.matching import RowMatch, pair_of
from backend.execution.evaluation.reader import (
    Conditions,
    Keys,
    Predicate,
    Reader,
    Run,
    conditions_of,
    finished,
    fulfilling,
    having_keys,
    predicate_of,
    projected,
    reads_only,
    streamed,
)
from backend.execution.pace import breathe, parts
from backend.execution.rows import held, held_shared
from dataflow.expressions.compile import compile_row
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.expressions.rewriting import composed, moved
from dataflow.expressions.source import key_function
from dataflow.functions import is_volatile
from dataflow.plan.join_shape import JoinShape, shape_of
from dataflow.plan.node import Columns, Join, source_column
from dataflow.values.types import BOOLEAN, Row, Value

if TYPE_CHECKING:
    from backend.execution.evaluation.readers import Readers

CHUNK_ROWS = 2_000
"""As many rows at hand are joined before conditions are applied to what comes out."""


@dataclass(slots=True)
class Step:
    reader: Reader
    match: RowMatch
    predicate: Predicate | None


class JoinReader:
    def __init__(self, readers: Readers, node: Join, columns: Columns, where: Conditions) -> None:
        shape = shape_of(node)
        conditions = [composed(each, node.outputs) for each in where] + list(conditions_of(node.filter))
        types = node.input_types
        for left, right in node.equalities:
            conditions.append(Call("=", (Column(left, types[left]), Column(right, types[right])), BOOLEAN))
        self._constant = predicate_of(each for each in conditions if not columns_of(each) and not is_volatile(each))
        pending = [each for each in conditions if columns_of(each) or is_volatile(each)]
        self._width = len(types)
        own = [_own_conditions(shape, number, pending) for number in range(len(node.inputs))]
        local = {each for conditions_own in own for each in conditions_own}
        pending = [each for each in pending if each not in local]
        self._places: dict[int, int] = {}
        self._steps: list[Step] = []
        self._columns = columns
        self._has_inputs = bool(node.inputs)
        remaining = set(range(len(node.inputs)))
        given: Columns = ()
        if node.inputs:
            start, sources = self._start(readers, node, shape, columns, own)
            given = tuple(sorted(sources))
            self._key_places = tuple(columns.index(sources[each]) for each in given)
            self._start_key = key_function(tuple(range(len(given))), [node.inputs[start].types[each] for each in given])
            self._reader = readers.reader(node.inputs[start], given, self._moved(shape, start, own[start]))
            self._add(shape, start)
            remaining.discard(start)
        self._given = given
        self._predicate = predicate_of(self._ready(pending))
        while remaining:
            self._extend(readers, node, shape, own, pending, remaining)
        assert not pending, "every condition reads what some input has"
        self._project = None
        outputs = node.outputs
        if outputs is None:
            outputs = tuple(Column(place, type_) for place, type_ in enumerate(types))
        placed = tuple(moved(each, self._places) for each in outputs)
        if placed != tuple(Column(place, type_) for place, type_ in enumerate(types)):
            self._project = compile_row(placed)
        settled = len({each for each in columns if self._is_given(node, shape, each)}) == len(columns)
        self._key_of = None if settled else key_function(columns, node.types)

    def _is_given(self, node: Join, shape: JoinShape, column: int) -> bool:
        position = source_column(node.outputs, column)
        if position is None or not self._given:
            return False
        found = shape.column_in(self._start_number, position)
        return found in self._given and self._columns[self._key_places[self._given.index(found)]] == column

    def _start(
        self, readers: Readers, node: Join, shape: JoinShape, columns: Columns, own: Sequence[Conditions]
    ) -> tuple[int, dict[int, int]]:
        """The input to begin with, and its columns that have keys (each with the node's column)."""
        best: tuple[tuple[int, int], int, dict[int, int]] | None = None
        for number, each in enumerate(node.inputs):
            sources: dict[int, int] = {}
            for column in columns:
                position = source_column(node.outputs, column)
                found = None if position is None else shape.column_in(number, position)
                if found is not None:
                    sources.setdefault(found, column)
            usable = readers.traced(each, tuple(sorted(sources)))
            sources = {column: sources[column] for column in usable}
            rank = readers.rank(each, usable, self._moved(shape, number, own[number]))
            if best is None or (rank, -len(sources)) < best[0]:
                best = ((rank, -len(sources)), number, sources)
        assert best is not None
        self._start_number = best[1]
        return best[1], best[2]

    def _moved(self, shape: JoinShape, number: int, conditions: Conditions) -> Conditions:
        offset = shape.offsets[number]
        places = {offset + column: column for column in range(shape.width(number))}
        return tuple(moved(each, places) for each in conditions)

    def _add(self, shape: JoinShape, number: int) -> None:
        offset = len(self._places)
        for column in range(shape.width(number)):
            self._places[shape.offsets[number] + column] = offset + column

    def _ready(self, pending: list[Expression]) -> list[Expression]:
        """The conditions that can be applied now, taken off the list."""
        found = [each for each in pending if columns_of(each) <= self._places.keys()]
        if len(self._places) < self._width:
            found = [each for each in found if not is_volatile(each)]
        for each in found:
            pending.remove(each)
        return [moved(each, self._places) for each in found]

    def _extend(
        self,
        readers: Readers,
        node: Join,
        shape: JoinShape,
        own: Sequence[Conditions],
        pending: list[Expression],
        remaining: set[int],
    ) -> None:
        known = frozenset(self._places)
        best: tuple[tuple[int, int, int], int, list[Expression], Columns] | None = None
        for number in sorted(remaining):
            there = frozenset(range(shape.offsets[number], shape.offsets[number] + shape.width(number)))
            links = [each for each in pending if pair_of(each, known, there) is not None]
            columns = _looked_up(links, known, there, shape.offsets[number])
            usable = readers.traced(node.inputs[number], columns)
            rank = readers.rank(node.inputs[number], usable, self._moved(shape, number, own[number]))
            order = (0 if links else 1, rank, number)
            if best is None or order < best[0]:
                best = (order, number, links, usable)
        assert best is not None
        _, number, links, usable = best
        offset = len(self._places)
        there = frozenset(range(shape.offsets[number], shape.offsets[number] + shape.width(number)))
        pairs = [pair for each in links if (pair := pair_of(each, known, there)) is not None]
        for each in links:
            pending.remove(each)
        places = dict(self._places)
        self._add(shape, number)
        placed = [(moved(one, places), moved(other, self._places), safe) for one, other, safe in pairs]
        match = RowMatch(placed, offset, usable)
        reader = readers.reader(node.inputs[number], match.columns, self._moved(shape, number, own[number]))
        self._steps.append(Step(reader, match, predicate_of(self._ready(pending))))
        remaining.discard(number)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        if self._steps:
            return (held_shared if self._project is None else held)(await self.stream(run, keys))
        parameters = run.parameters
        if self._constant is not None and not self._constant((), parameters):
            return []
        rows: list[Row] = [()]
        if self._has_inputs:
            rows = fulfilling(await self._reader.rows(run, self._start_keys(keys)), self._predicate, parameters)
        rows = projected(rows, self._project, parameters)
        if self._key_of is not None and keys is not None:
            rows = having_keys(rows, self._key_of, keys)
        return rows

    async def stream(self, run: Run, keys: Keys | None) -> Iterator[Sequence[Row]]:
        """Only rows whose keys are looked up in another input are held."""
        parameters = run.parameters
        if self._constant is not None and not self._constant((), parameters):
            return iter(())
        given: Iterator[Sequence[Row]] = iter(([()],))
        if self._has_inputs:
            first = self._reader, run, self._start_keys(keys)
            looks_up = self._steps and self._steps[0].match.columns  # and reads all of them at once
            given = parts(await self._reader.rows(*first[1:])) if looks_up else await streamed(*first)
            if self._predicate is not None:
                given = finished(given, parameters, self._predicate)
        for step in self._steps:
            given = await self._joined(run, step, given)
        if self._project is None and (self._key_of is None or keys is None):
            return given
        return finished(given, parameters, None, self._project, self._key_of, keys)

    def _start_keys(self, keys: Keys | None) -> Keys | None:
        if not self._given:
            return None
        assert keys is not None
        places, wanted = self._key_places, list(keys.values())
        shorter = [tuple([values[place] for place in places]) for part in parts(wanted) for values in part]
        return {self._start_key(values): values for part in parts(shorter) for values in part}

    async def _joined(self, run: Run, step: Step, given: Iterator[Sequence[Row]]) -> Iterator[Sequence[Row]]:
        parameters: tuple[Value, ...] = run.parameters
        match = step.match
        wanted = None
        if match.columns:
            rows = held_shared(given)
            if not rows:
                return iter(())
            wanted, given = match.wanted(rows, parameters), parts(rows)
        else:
            some = next(filter(None, given), None)
            if some is None:
                return iter(())
            given = chain((some,), given)
        found = await step.reader.rows(run, wanted)
        index = match.index(found, parameters) if match.pairs else None
        joined = _joined_parts(given, found, match, index, parameters)
        return joined if step.predicate is None else finished(joined, parameters, step.predicate)


def _joined_parts(
    given: Iterable[Sequence[Row]],
    found: Sequence[Row],
    match: RowMatch,
    index: dict[Any, list[Row]] | None,
    parameters: Sequence[Value],
) -> Iterator[list[Row]]:
    """Each row with each that is its match, a few thousand at a time."""
    joined: list[Row] = []
    for part in chain.from_iterable(map(parts, given)):
        if index is None:
            matches: list[Sequence[Row]] = [found] * len(part)
        else:
            matches = [index.get(key, ()) for key in match.here(part, parameters)]
        for row, others in zip(part, matches):
            for start in range(0, len(others), CHUNK_ROWS):
                some = others if len(others) <= CHUNK_ROWS else others[start : start + CHUNK_ROWS]
                joined += [row + other for other in some]
                if len(joined) >= CHUNK_ROWS:
                    yield joined
                    breathe()
                    joined = []
    yield joined


def _own_conditions(shape: JoinShape, number: int, conditions: Sequence[Expression]) -> Conditions:
    low = shape.offsets[number]
    high = low + shape.width(number)
    return tuple(each for each in conditions if reads_only(each, low, high))


def _looked_up(links: Sequence[Expression], known: frozenset[int], there: frozenset[int], offset: int) -> Columns:
    found = set()
    for each in links:
        pair = pair_of(each, known, there)
        if pair is not None and isinstance(pair[1], Column) and not pair[2]:
            found.add(pair[1].index - offset)
    return tuple(sorted(found))
