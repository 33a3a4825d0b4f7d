"""Generated code of paths over several shards: the stages of joins, cut into legs at exchanges.

The stages are those of one shard (`join_code`, `match_code`). Where the next key lives elsewhere the
prefix is left in a box of that shard, and the rest of the path is another leg. A lookup that meets
a hole parks its prefix, so it is always the first of its leg that can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dataflow.code.join_code import JoinWriter, reads_before
from dataflow.code.lookup_code import fetch, times
from dataflow.code.match_code import MatchWriter
from dataflow.expressions.expression import columns_of
from dataflow.expressions.source import FunctionSource
from dataflow.plan.exchange import Boxes, Exchange, Leg, Place, Shards, changes_of, is_plain
from dataflow.plan.join_shape import output_column, shape_of
from dataflow.plan.node import Columns, Join, LeftJoin, SemiJoin, source_column
from dataflow.plan.pipeline import Choice, Pipeline, PipelineStage, pipeline_of
from dataflow.runtime.operator import Operator
from dataflow.values.types import SqlType


@dataclass(frozen=True)
class At:
    """Where code is being written: in which leg, and where its rows are (as positions, or columns).

    `can_park`: the prefix being worked on is `p`, and nothing but it is known.
    """

    code: FunctionSource
    leg: Leg
    place: Place
    can_park: bool

    def moved(self, place: Place) -> At:
        return replace(self, place=place)


Finish = Callable[[At, str, str], None]
"""What is done with each row at the end of a path; its place is in terms of the row's columns."""


class Track:
    """The legs of one path, in the order in which rows reach them."""

    def __init__(self, shards: Shards, name: str, operator: Operator, boxes_of: Callable[[str], Boxes]) -> None:
        self.shards, self.name, self._operator = shards, name, operator.number
        self._boxes_of = boxes_of
        self.legs: list[Leg] = []

    def leg(self, after: Leg | None = None, is_exchanged: bool = False, types: Sequence[SqlType] = ()) -> Leg:
        name = f"{self.name}.{len(self.legs)}"
        made = Leg(name, self._operator, self._boxes_of(name), after, is_exchanged, is_plain=is_plain(types))
        self.legs.append(made)
        return made

    def source(self, leg: Leg, names: Sequence[str]) -> FunctionSource:
        """The function of a leg, with the block open that runs for each prefix `p` and knows its values by these names."""
        code = FunctionSource(f"leg_{leg.name.replace('.', '_')}", "rows")
        code.open("for p in rows:")
        code.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = p")
        return code

    def restarted(self, at: At, row: str, types: Sequence[SqlType], carried: Mapping[str, SqlType], weight: str) -> At:
        """A leg of its own, on the same shard, for rows that come out of an operator's path: its variables are not that one's.

        The row is `y0_` there and its weight `w`; whoever goes on builds the leg.
        """
        leg = self.leg(at.leg)
        self.shards.send(at.code, leg, str(self.shards.shard), [f"*{row}", *carried, weight])
        code = FunctionSource(f"leg_{leg.name.replace('.', '_')}", "rows")
        code.open("for p in rows:")
        width = len(types)
        code.line(f"y0_ = p[:{width}]")
        code.line(f"{', '.join([*carried, 'w'])}, = p[{width}:]")
        return At(code, leg, at.place, True)


class JoinPath:
    """Rows of input `start` through a join: as changes of it, or (`is_change` false) to find rows as of now."""

    def __init__(
        self, track: Track, operator: Operator, start: int, is_change: bool, carried: Mapping[str, SqlType], finish: Finish
    ) -> None:
        assert isinstance(operator.node, Join)
        self.track, self.operator, self.node, self.start = track, operator, operator.node, start
        self.changed = start if is_change else None
        self.carried, self.finish = carried, finish
        self.shape = shape_of(operator.node)

    def begin(self, at: At, weight: str) -> None:
        """The row is `r{start}`; the place is in terms of its columns."""
        place = None
        if at.place is not None:
            place = self._canonical(self.shape.position(self.start, column) for column in at.place)
        writer = JoinWriter(at.code, self.operator, self.node, self.changed)
        pipeline = pipeline_of(self.node, self.start)
        writer.checks(pipeline.stages[0])
        self._extend(at.moved(place), writer, Pipeline(pipeline.stages[1:], pipeline.choice), frozenset({self.start}), [weight])

    def _canonical(self, positions: Iterator[int] | Columns) -> Columns:
        return tuple(self.shape.members[position][0] for position in positions)

    def _exchange(self, at: At, writer: JoinWriter, stage: PipelineStage) -> Exchange | None:
        """What stands before the stage, if its key lives elsewhere than the prefix is."""
        there = Exchange(self._canonical(writer.key_positions(stage)))
        return None if at.place == there.sources else there

    def _extend(self, at: At, writer: JoinWriter, pipeline: Pipeline, known: frozenset[int], weights: list[str]) -> None:
        for index, stage in enumerate(pipeline.stages):
            rest = Pipeline(pipeline.stages[index:], pipeline.choice)
            if self._must_leave(at, writer, stage):
                self._hand_over(at, writer, stage, rest, known, weights)
                return
            found = self._fetch(at, writer, stage)
            weights = [*weights, writer.open_rows(stage, found)]
            known |= {stage.number}
            at = replace(at, can_park=False)
        if pipeline.choice is not None:
            self._choose(at, writer, pipeline.choice, known, weights, ())
            return
        place = None if at.place is None else tuple(output_column(self.node, position) for position in at.place)
        whole = None if place is None or None in place else tuple(column for column in place if column is not None)
        self.finish(at.moved(whole), writer.output_row(), times(*weights))

    def _must_leave(self, at: At, writer: JoinWriter, stage: PipelineStage) -> bool:
        is_sure = writer.arrangement(stage).full or at.can_park
        return self._exchange(at, writer, stage) is not None or not is_sure

    def _fetch(self, at: At, writer: JoinWriter, stage: PipelineStage) -> str:
        owner = self.operator.inputs[stage.number]
        at.leg.reads.append(owner)
        arrangement, key = writer.arrangement(stage), writer.key(stage)
        missing = () if arrangement.full else self.track.shards.parking(at.code, owner, arrangement, at.leg, key)
        return fetch(at.code, arrangement, key, writer.is_old(stage.number), missing)

    def _hand_over(
        self, at: At, writer: JoinWriter, stage: PipelineStage, rest: Pipeline, known: frozenset[int], weights: list[str],
        counts: tuple[str, ...] = (), then: Callable[[At, JoinWriter], None] | None = None,
    ) -> None:  # fmt: skip
        """Go on with `rest` (or `then`) in a leg of its own, where the key of `stage` lives."""
        exchange = self._exchange(at, writer, stage)
        positions = [p for p in sorted(self._needed(rest)) if self.shape.input_of[p] in known]
        types = [self.node.input_types[p] for p in positions]
        leg = self.track.leg(at.leg, exchange is not None, [*types, *self.carried.values()])
        key = writer.key(stage)
        shards = self.track.shards
        key_types = [self.node.input_types[p] for p in writer.key_positions(stage)]
        target = str(shards.shard) if exchange is None else shards.owner_source(at.code, key, key_types)
        values = [writer.columns[p] for p in positions]
        shards.send(at.code, leg, target, [*values, *self.carried, *counts, times(*weights)])
        names = {p: f"v{p}" for p in positions}
        code = self.track.source(leg, [*names.values(), *self.carried, *counts, "w"])
        further = JoinWriter(code, self.operator, self.node, self.changed, names)
        there = self._canonical(writer.key_positions(stage))
        if then is None:
            self._extend(At(code, leg, there, True), further, rest, known, ["w"])
        else:
            then(At(code, leg, there, True), further)
        leg.run = code.build()

    def _choose(
        self, at: At, writer: JoinWriter, choice: Choice, known: frozenset[int], weights: list[str], counts: tuple[str, ...]
    ) -> None:
        """Count the rows that each alternative has, one after the other, then go on with the one that has the fewest."""
        number = len(counts)
        alternative = choice.alternatives[number]
        stage = alternative.stages[0]

        def counted(at: At, writer: JoinWriter, weights: list[str]) -> None:
            found = self._fetch(at, writer, stage)
            count = f"c{number}_"
            unique = writer.arrangement(stage).kind.value in ("unique", "state")
            at.code.line(f"{count} = {'1' if unique else f'len({found} or ())'}")
            further = (*counts, count)
            at = replace(at, can_park=False)
            if len(further) < len(choice.alternatives):
                self._choose(at, writer, choice, known, weights, further)
                return
            level = at.code.depth
            for place, each in enumerate(choice.alternatives):
                others = [f"{further[place]} <= {other}" for other in further[place + 1 :]]
                head = "if" if place == 0 else "elif"
                at.code.open(f"{head} {' and '.join(others)}:" if others else "else:")
                if place == number:
                    weight = writer.open_rows(stage, found)
                    rest = Pipeline(each.stages[1:], each.choice)
                    self._extend(at, writer, rest, known | {stage.number}, [*weights, weight])
                else:
                    self._hand_over(at, writer, each.stages[0], each, known, weights)
                at.code.close(level)

        if self._must_leave(at, writer, stage):
            whole = Pipeline((), choice)
            self._hand_over(at, writer, stage, whole, known, weights, counts, lambda at, writer: counted(at, writer, ["w"]))
        else:
            counted(at, writer, weights)

    def _needed(self, pipeline: Pipeline) -> set[int]:
        """The positions that the rest of a path reads."""
        outputs = self.node.outputs
        if outputs is None:
            return set(range(len(self.node.input_types)))
        found = {column for each in outputs for column in columns_of(each)}
        for stage in pipeline.stages:
            found.update(stage.sources, *stage.checks, *map(columns_of, stage.conditions))
        for each in pipeline.choice.alternatives if pipeline.choice is not None else ():
            found |= self._needed(each)
        return found


class MatchPath:
    """Rows through a left or semi join."""

    def __init__(
        self, track: Track, operator: Operator, is_change: bool, carried: Mapping[str, SqlType], finish: Finish
    ) -> None:
        node = operator.node
        assert isinstance(node, LeftJoin | SemiJoin)
        self.track, self.operator, self.node = track, operator, node
        self.is_change, self.carried, self.finish = is_change, carried, finish
        self.width = len(node.left.types)

    def begin(self, at: At, weight: str) -> None:
        """The left row is `r0`."""
        writer = MatchWriter(at.code, self.operator)
        right = writer.reader(1)
        there = tuple(writer.left_of[column] for column in right.columns)
        if at.place == there and (at.can_park or right.full):
            self._left_row(at, weight)
            return
        is_exchanged = at.place != there
        types = [*self.node.left.types, *self.carried.values()]
        leg = self.track.leg(at.leg, is_exchanged, types)
        shards = self.track.shards
        target = str(shards.shard)
        if is_exchanged:
            key = writer.key(right, "r0", writer.left_of, writer.left_types)
            target = shards.owner_source(at.code, key, [writer.left_types[column] for column in there])
        shards.send(at.code, leg, target, ["*r0", *self.carried, weight])
        code = self.track.source(leg, [*(f"v{c}" for c in range(self.width)), *self.carried, "w"])
        code.line(f"r0 = p[:{self.width}]")
        self._left_row(At(code, leg, there, True), "w")
        leg.run = code.build()

    def _left_row(self, at: At, weight: str) -> None:
        old = self.is_change and reads_before(self.operator, 0, 1)
        owner, right = self.operator.inputs[1], MatchWriter(at.code, self.operator).reader(1)
        at.leg.reads.append(owner)
        shards, place = self.track.shards, self._out(at.place)

        def missing(key: str) -> Sequence[str]:
            return () if right.full else shards.parking(at.code, owner, right, at.leg, key)

        after = replace(at, can_park=False, place=place)
        emit = lambda row, found: self.finish(after, row, found)  # noqa: E731
        MatchWriter(at.code, self.operator).left_row(weight, emit, old, missing)

    def _out(self, place: Place) -> Place:
        """A place in terms of left columns, in terms of the output's."""
        if place is None or isinstance(self.node, SemiJoin):
            return place
        shown = {source_column(self.node.outputs, c): c for c in reversed(range(len(self.node.types)))}
        found = tuple(shown.get(column, -1) for column in place)
        return None if -1 in found else found

    def begin_right(self, root: Leg) -> None:
        """Flat changes of the right input, all of those that concern a left row, arrive at `root`."""
        shards, track = self.track.shards, self.track
        code = FunctionSource(f"leg_{root.name.replace('.', '_')}", "rows")
        each = track.leg(root)
        code.line(f"delta = {code.constant(changes_of)}(rows)")
        MatchWriter(code, self.operator).group_changes()
        code.line(f"{code.constant(each.boxes)}[{shards.shard}].extend(groups.values())")
        root.run = code.build()
        self._changed_key(each)

    def _changed_key(self, leg: Leg) -> None:
        """For each left row of a key that has changes."""
        shards = self.track.shards
        code = FunctionSource(f"leg_{leg.name.replace('.', '_')}", "rows")
        writer = MatchWriter(code, self.operator)
        left, right, owner = writer.reader(0), writer.reader(1), self.operator.inputs[0]
        code.open("for p in rows:")
        code.line("changes = p")
        leg.reads.append(owner)
        weight = writer.left_rows(
            lambda key: () if left.full else shards.parking(code, owner, left, leg, key)
        )
        there = tuple(writer.left_of[column] for column in right.columns)
        is_exchanged = left.columns != there
        types = (*self.node.left.types, *self.node.right.types)
        further = self.track.leg(leg, is_exchanged, types)
        target = str(shards.shard)
        if is_exchanged:
            key = writer.key(right, "r0", writer.left_of, writer.left_types)
            target = shards.owner_source(code, key, [writer.left_types[column] for column in there])
        with code.block("if hits:"):
            shards.send(code, further, target, ["r0", "tuple(hits)" if is_exchanged else "hits", weight])
        leg.run = code.build()
        self._transition(further, there)

    def _transition(self, leg: Leg, place: Columns) -> None:
        code = self.track.source(leg, ["r0", "hits", "w0"])
        if leg.is_exchanged:  # messages have lists where there were tuples
            code.line("r0, hits = tuple(r0), [(tuple(r1), w) for r1, w in hits]")
        writer = MatchWriter(code, self.operator)
        right, owner, shards = writer.reader(1), self.operator.inputs[1], self.track.shards
        leg.reads.append(owner)
        at = At(code, leg, self._out(place), False)
        writer.transition(
            "w0",
            lambda row, weight: self.finish(at, row, weight),
            lambda key: () if right.full else shards.parking(code, owner, right, leg, key),
        )
        leg.run = code.build()
