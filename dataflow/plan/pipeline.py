"""Delta queries as data: how a change in one input of a join meets the others.

A pipeline starts with the rows of one input and extends each prefix by one lookup after the
other; no intermediate result is kept. Stages are separable: each reads one arrangement by a
key that its prefix knows, so it can run wherever that key lives.

In a cyclic join two of the next inputs may bind the same unknown column. There the pipeline
has a `Choice`: for each prefix it goes on with the input that has the fewest extensions and
validates them in the other, which makes the join worst-case optimal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dataflow.expressions.expression import Expression, columns_of
from dataflow.plan.join_shape import JoinShape, conjuncts, is_unique, shape_of
from dataflow.plan.key_tracing import lookup_columns
from dataflow.plan.node import Columns, Join, LeftJoin, Node, SemiJoin

CHOICES_MAX = 3
"""Each choice doubles the code that follows it."""


@dataclass(frozen=True)
class PipelineStage:
    """Extend the prefix by the rows of input `number` whose `columns` equal `sources`.

    `sources` are positions that the prefix has. `checks` are further pairs of positions that
    must be equal, `conditions` what else must hold; both are known once this input is.
    """

    number: int
    columns: Columns
    sources: Columns
    checks: tuple[tuple[int, int], ...] = ()
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Go on with the alternative whose first stage finds the fewest rows."""

    alternatives: tuple[Pipeline, ...]


@dataclass(frozen=True)
class Pipeline:
    stages: tuple[PipelineStage, ...]
    choice: Choice | None = None


@lru_cache(maxsize=4096)
def pipeline_of(node: Join, start: int) -> Pipeline:
    """The pipeline for rows of input `start`; its first stage is only that input's own checks."""
    shape = shape_of(node)
    first = _stage(node, shape, frozenset(), start, ())
    rest = _extend(node, shape, frozenset({start}), CHOICES_MAX)
    return Pipeline((first, *rest.stages), rest.choice)


def _extend(node: Join, shape: JoinShape, known: frozenset[int], choices: int) -> Pipeline:
    stages: list[PipelineStage] = []
    while len(known) < len(node.inputs):
        candidates = [
            (_lookup(node, shape, known, number), number) for number in range(len(node.inputs)) if number not in known
        ]
        number = min(candidates, key=lambda each: _rank(node, *each))[1]
        given = {n: columns for columns, n in candidates}
        rivals = [
            other
            for columns, other in candidates
            if other != number and choices and columns and _share_unknown(shape, known, number, other)
        ]
        if rivals and given[number] and not is_unique(node.inputs[number], given[number]):
            picked = (number, *rivals)
            return Pipeline(
                tuple(stages),
                Choice(tuple(_through(node, shape, known, each, choices - 1) for each in picked)),
            )
        stages.append(_stage(node, shape, known, number, given[number]))
        known |= {number}
    return Pipeline(tuple(stages))


def _through(node: Join, shape: JoinShape, known: frozenset[int], number: int, choices: int) -> Pipeline:
    first = _stage(node, shape, known, number, _lookup(node, shape, known, number))
    rest = _extend(node, shape, known | {number}, choices)
    return Pipeline((first, *rest.stages), rest.choice)


def _rank(node: Join, columns: Columns, number: int) -> tuple[bool, bool, int, int]:
    return (not columns, not is_unique(node.inputs[number], columns), -len(columns), number)


def _is_known(shape: JoinShape, known: frozenset[int], position: int) -> bool:
    return any(shape.input_of[each] in known for each in shape.members[position])


def _share_unknown(shape: JoinShape, known: frozenset[int], left: int, right: int) -> bool:
    return any(
        shape.column_in(right, shape.position(left, column)) is not None
        and not _is_known(shape, known, shape.position(left, column))
        for column in range(shape.width(left))
    )


def _lookup(node: Join, shape: JoinShape, known: frozenset[int], number: int) -> Columns:
    """The columns of input `number` to look it up by, one for each class that is known."""
    columns, seen = [], set()
    for column in range(shape.width(number)):
        members = shape.members[shape.position(number, column)]
        if id(members) not in seen and any(shape.input_of[each] in known for each in members):
            seen.add(id(members))
            columns.append(column)
    return lookup_columns(node.inputs[number], tuple(columns))


def _stage(node: Join, shape: JoinShape, known: frozenset[int], number: int, columns: Columns) -> PipelineStage:
    sources = tuple(
        next(each for each in shape.members[shape.position(number, column)] if shape.input_of[each] in known)
        for column in columns
    )
    looked_up = {shape.position(number, column) for column in columns}
    checks = []
    for column in range(shape.width(number)):
        position = shape.position(number, column)
        if position in looked_up:
            continue
        for each in shape.members[position]:
            inside = shape.input_of[each] == number and each < position
            if shape.input_of[each] in known or inside:
                checks.append((position, each))
                break
    now = known | {number}
    conditions = tuple(
        each
        for each in conjuncts(node.filter)
        if all(shape.input_of[c] in now for c in columns_of(each))
        and (not known or any(shape.input_of[c] == number for c in columns_of(each)))
    )
    return PipelineStage(number, columns, sources, tuple(checks), conditions)


def _stages(pipeline: Pipeline) -> Iterator[PipelineStage]:
    yield from pipeline.stages
    if pipeline.choice is not None:
        for each in pipeline.choice.alternatives:
            yield from _stages(each)


def lookups_of(node: Node, start: int | None = None) -> set[tuple[int, Columns]]:
    """(input, columns) of every lookup made for changes in input `start`, or in any input."""
    match node:
        case Join():
            starts = range(len(node.inputs)) if start is None else (start,)
            return {
                (stage.number, stage.columns)
                for each in starts
                for index, stage in enumerate(_stages(pipeline_of(node, each)))
                if index
            }
        case LeftJoin() | SemiJoin():
            left = tuple(sorted({left for left, _ in node.equalities}))
            right = tuple(sorted({right for _, right in node.equalities}))
            return {(0, lookup_columns(node.left, left)), (1, lookup_columns(node.right, right))}
        case _:
            return set()
