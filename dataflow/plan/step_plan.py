"""The change of one table through all that depends on it, on several shards: legs in rounds.

Every leg has a fixed round, and an exchange stands between two rounds where rows cross or
where a leg may meet holes, which are filled before the next round begins. So

- what a leg reads has been brought up to date on all shards, and so has all that a hole of
  it would be computed from;
- arrangements and aggregates get all their changes at once, and order them themselves: what
  several shards and paths send has no order.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from dataflow.code.fused_code import amends_in_place, write_fused
from dataflow.code.group_code import GroupWriter, columns_used, write_update
from dataflow.code.lookup_code import Output, store_row
from dataflow.code.match_code import MatchWriter
from dataflow.code.path_code import At, JoinPath, MatchPath, Track
from dataflow.code.topk_code import topk_update
from dataflow.expressions.source import Function, FunctionSource
from dataflow.plan.exchange import Boxes, Leg, Place, Prefix, Shards, changes_of, is_plain, ordered_prefixes
from dataflow.plan.node import Aggregate, Columns, Join, LeftJoin, SemiJoin, TopK, Union
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.runtime.table_step import TIMED_EVERY
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Delta

Applied = dict[int, list[Prefix]]
"""What a step has changed, by the identity of the arrangement."""


@dataclass(frozen=True)
class Sink:
    """Where rows of an operator go. Those with a `key` go to its shard, as the columns `sent`; others stay, as pairs with weights."""

    name: str
    boxes: Boxes
    key: Columns | None = None
    sent: Columns = ()


@dataclass
class Path:
    """One input's changes through an operator; its first leg is a sink of the input."""

    legs: list[Leg]
    places: set[Place] = field(default_factory=set)
    """Where the rows that come out are, by their columns."""
    covers: Operator | None = None
    """The consumer that the path goes through as well."""


class SinkRows:
    """Sends an operator's rows to its sinks. Takes the place of `Output` where there are several shards."""

    def __init__(self, shards: Shards, operator: Operator, sinks: list[Sink]) -> None:
        self.shards, self.operator, self.sinks = shards, operator, sinks

    def emit(self, at: At, path: Path, row: str, weight: str) -> None:
        code, types = at.code, self.operator.types
        path.places.add(at.place)
        if not self.sinks:  # a view reads the operator's own state
            code.line("pass")
        if self.sinks and not row.isidentifier():
            name = code.fresh("x")
            code.line(f"{name} = {row}")
            row = name
        for sink in self.sinks:
            boxes = code.constant(sink.boxes)
            is_here = sink.key is None or sink.key == at.place
            feed = (sink.name, not is_here)
            if feed not in at.leg.feeds:
                at.leg.feeds.append(feed)
            if sink.key is None:
                code.line(f"{boxes}[{self.shards.shard}].append(({row}, {weight}))")
                continue
            target = str(self.shards.shard)
            if not is_here:
                key = code.fresh("k")
                code.line(f"{key} = {code.row_key(row, sink.key, types)}")
                target = self.shards.owner_source(code, key, [types[c] for c in sink.key])
            whole = len(sink.sent) == len(types)
            values = f"*{row}" if whole else ", ".join(f"{row}[{column}]" for column in sink.sent)
            code.line(f"{boxes}[{target}].append(({values}{', ' if values else ''}{weight},))")


class RowsAt:
    """`SinkRows` in the form of `dataflow.code.lookup_code.Output`."""

    def __init__(self, rows: SinkRows, at: At, path: Path) -> None:
        self._rows, self._at, self._path = rows, at, path

    def begin(self) -> None:
        pass

    def row(self, row: str, weight: str) -> None:
        self._rows.emit(self._at, self._path, row, weight)

    def end(self) -> None:
        pass


class StepPlan:
    def __init__(
        self, shards: Shards, graph: Graph, table: int, boxes_of: Callable[[str], Boxes], applied: Applied,
        running: list[int], dead: Set[int] = frozenset(), fail: Callable[[Exception], None] | None = None,
    ) -> None:  # fmt: skip
        """`running` tells of which operator code is running. Rows for `dead` ones are dropped; `fail` is told what is raised."""
        self.shards, self.table, self._running = shards, table, running
        self._dead, self._fail = dead, fail
        self._graph = graph
        self._boxes_of, self._applied = boxes_of, applied
        self.legs: dict[str, Leg] = {}
        self._round: dict[str, int] = {}
        self._crosses: set[str] = set()
        self._base = base = graph.bases[table]
        reached = _reached(base)
        self._reached = {each.number: each for each in reached}
        self._takers: dict[str, tuple[Operator, ...]] = {}
        """By leg, the operators whose input its rows are; legs in the middle of an operator have none."""
        self._ready: dict[int, int] = {}
        self._entrance = self._enter(base)
        covered: set[tuple[int, int]] = set()
        places: dict[int, Place] = {base.number: None}
        for operator in reached:
            paths = [
                self._path(operator, number, places[each.number])
                for number, each in enumerate(operator.inputs)
                if each.number in places and (each.number, operator.number) not in covered
            ]
            if operator is not base:
                found = {place for path in paths for place in path.places}
                places[operator.number] = found.pop() if len(found) == 1 else None
            covered |= {(operator.number, path.covers.number) for path in paths if path.covers is not None}
            self._assign(operator, paths)
        self.rounds: list[list[tuple[Leg, tuple[Operator, ...]]]] = []
        """Each leg with the operators whose input its rows are."""
        self._order()

    # -- what runs

    def _order(self) -> None:
        last = max(self._round.values(), default=0)
        self.rounds = [[] for _ in range(last + 1)]
        for leg in self.legs.values():
            self.rounds[self._round[leg.name]].append((leg, self._takers.get(leg.name, ())))
        self.is_exchanged = [
            any(each.parks for each, _ in legs) or any(each.name in self._crosses for each, _ in following)
            for legs, following in zip(self.rounds, [*self.rounds[1:], []], strict=True)
        ]
        """Whether an exchange follows a round."""

    def enter(self, delta: Delta) -> None:
        """The changes of the table on this shard: they leave for where they are wanted, and the first round is run."""
        self._base.rows_in += len(delta)
        self._entrance(delta)
        self.run(0)

    def run(self, number: int, is_again: bool = False) -> None:
        """Run the legs of a round on what has come for them; `is_again`: on what had met holes, which is counted already."""
        shard = self.shards.shard
        clock = self._graph.clock if self._graph.is_timed else None
        for leg, takers in self.rounds[number]:
            rows = leg.take(shard)
            if rows and leg.operator not in self._dead:
                self._running[0] = leg.operator
                if not is_again:
                    for each in takers:
                        each.rows_in += len(rows)
                before = 0.0 if clock is None else clock()
                try:
                    leg.run(rows)
                except Exception as error:
                    if self._fail is None:
                        raise
                    self._fail(error)
                if clock is not None:
                    (takers[-1] if takers else self._reached[leg.operator]).seconds += (clock() - before) * TIMED_EVERY

    @property
    def is_busy(self) -> bool:
        """Whether rows are waiting in some box."""
        return any(box for leg in self.legs.values() for box in leg.boxes)

    # -- rounds

    def _feed(self, leg: Leg) -> None:
        """The rows of a leg go to others, after it is done with all of them."""
        at = self._round[leg.name]
        for name, is_exchanged in leg.feeds:
            after = at + (is_exchanged or self._is_late(leg))
            self._round[name] = max(self._round.get(name, 0), after)
            if is_exchanged:
                self._crosses.add(name)

    def _is_late(self, leg: Leg) -> bool:
        """Whether it may get, or go on with, rows only after holes of its round are filled."""
        if leg.parks:
            return True
        before = leg.after
        return before is not None and self._round[before.name] == self._round[leg.name] and self._is_late(before)

    def _assign(self, operator: Operator, paths: list[Path]) -> None:
        """Give the legs of an operator their rounds; what its consumers read is ready after the last."""
        ready = max((self._ready.get(each.number, 0) for each in operator.inputs), default=0)
        for path in paths:
            self._takers[path.legs[0].name] = (operator,) if path.covers is None else (operator, path.covers)
            for leg in path.legs:
                at = self._round.get(leg.name, 0)
                if leg.after is not None:
                    at = max(at, self._round[leg.after.name] + leg.is_exchanged)
                    if leg.is_exchanged:
                        self._crosses.add(leg.name)
                at = max([at, *(self._ready.get(each.number, 0) for each in leg.reads)])
                self._round[leg.name] = at
                self.legs[leg.name] = leg
                self._feed(leg)
                ready = max(ready, at + self._is_late(leg))
        for sink, store in zip(_store_sinks(self._sinks(operator)), operator.stores.values(), strict=True):
            leg = self._storing(operator, store, sink)
            self._round.setdefault(leg.name, 0)
            self.legs[leg.name] = leg
            ready = max(ready, self._round[leg.name])
        self._ready[operator.number] = ready

    # -- code

    def _sinks(self, operator: Operator) -> list[Sink]:
        everything = tuple(range(len(operator.types)))
        sinks = []
        for columns in operator.stores:
            name = f"{self.table}.{operator.number}.store{'_'.join(map(str, columns))}"
            sinks.append(Sink(name, self._boxes_of(name), columns, everything))
        for consumer, number in operator.consumers:
            name = f"{self.table}.{consumer.number}.{number}.0"
            key, sent = gather_columns(consumer, number), everything
            if isinstance(consumer.node, Aggregate):
                sent = columns_used(consumer.node)
            sinks.append(Sink(name, self._boxes_of(name), key, sent))
        return sinks

    def _rows(self, operator: Operator) -> SinkRows:
        return SinkRows(self.shards, operator, self._sinks(operator))

    def _enter(self, base: Operator) -> Function:
        """The table's own changes, wherever they are, go where they are wanted."""
        code = FunctionSource(f"enter_{self.table}", "delta")
        rows, path = self._rows(base), Path([])
        leg = Leg(f"{self.table}.enter", base.number, [])
        stay = [sink for sink in rows.sinks if sink.key is None]
        rows.sinks = [sink for sink in rows.sinks if sink.key is not None]
        for sink in stay:
            code.line(f"{code.constant(sink.boxes)}[{self.shards.shard}].extend(delta)")
            leg.feeds.append((sink.name, False))
        if rows.sinks:
            code.open("for row, w in delta:")
            rows.emit(At(code, leg, None, False), path, "row", "w")
        self._round[leg.name] = 0
        self._feed(leg)
        return code.build()

    def _path(self, operator: Operator, number: int, place: Place) -> Path:
        """The path of an input's changes, which are at `place`; written anew only if what is around the operator has changed."""
        name = (self.table, number, place, self._is_alone(operator))
        found = operator.paths.get(name)
        if found is None:
            found = operator.paths[name] = self._new_path(operator, number, place)
        assert isinstance(found, Path)
        return found

    def _is_alone(self, operator: Operator) -> bool:
        """Whether nothing else that the operator's only consumer reads is changed by this table."""
        consumers = operator.consumers
        return len(consumers) == 1 and sum(each.number in self._reached for each in consumers[0][0].inputs) == 1

    def _new_path(self, operator: Operator, number: int, place: Place) -> Path:
        node, source = operator.node, operator.inputs[number]
        track = Track(self.shards, f"{self.table}.{operator.number}.{number}", operator, self._boxes_of)
        root = track.leg(types=source.types)
        path, rows = Path(track.legs), self._rows(operator)
        match node:
            case Join():
                code = track.source(root, [f"r{number}", "w"])
                JoinPath(track, operator, number, True, {}, lambda at, row, w: rows.emit(at, path, row, w)).begin(
                    At(code, root, place, True), "w"
                )
                root.run = code.build()
            case Union():
                root.run = self._passing(rows, path, root, place)
            case LeftJoin() | SemiJoin():
                match_path = MatchPath(track, operator, True, {}, lambda at, row, w: rows.emit(at, path, row, w))
                if number == 1:
                    match_path.begin_right(root)
                else:
                    code = track.source(root, ["r0", "w"])
                    match_path.begin(At(code, root, place, True), "w")
                    root.run = code.build()
            case Aggregate():
                self._group(operator, node, root, path, rows)
            case TopK():
                assert operator.state is not None
                update = topk_update(operator, operator.state, lambda out: None)
                passing = self._passing(rows, path, root, operator.state.columns)
                root.run = lambda flat: passing(update(changes_of(flat)))
        return path

    def _passing(self, rows: SinkRows, path: Path, leg: Leg, place: Place) -> Function:
        code = FunctionSource(f"pass_{leg.name.replace('.', '_')}", "rows")
        code.open("for row, w in rows:")
        rows.emit(At(code, leg, place, False), path, "row", "w")
        return code.build()

    def _group(self, operator: Operator, node: Aggregate, root: Leg, path: Path, rows: SinkRows) -> None:
        state = operator.state
        assert state is not None
        code = FunctionSource(f"leg_{root.name.replace('.', '_')}", "delta")
        code.line(f"delta = {code.constant(ordered_prefixes)}(delta)")
        used = columns_used(node)
        root.is_plain = is_plain(node.input.types[column] for column in used)
        writer = GroupWriter(code, node, used)
        if self._is_alone(operator) and amends_in_place(operator):
            path.covers = operator.consumers[0][0]
            write_fused(writer, operator, Output(code, path.covers))
            path.places.add(None)
        else:
            write_update(writer, state, RowsAt(rows, At(code, root, state.columns, False), path))
        root.run = code.build()

    def _storing(self, operator: Operator, store: Arrangement, sink: Sink) -> Leg:
        found = operator.paths.get((sink.name,))
        if found is None:
            found = operator.paths[sink.name,] = self._new_storing(operator, store, sink)
        assert isinstance(found, Leg)
        return found

    def _new_storing(self, operator: Operator, store: Arrangement, sink: Sink) -> Leg:
        code = FunctionSource(f"leg_{sink.name.replace('.', '_')}", "rows")
        code.line(f"rows = {code.constant(ordered_prefixes)}(rows)")
        if store.recorders:
            code.line(f"{code.constant(self._applied)}[{id(store)}] = rows")
        code.open("for p in rows:")
        code.line("row, w = p[:-1], p[-1]")
        store_row(code, store, "row", "w", operator.types)
        return Leg(sink.name, operator.number, sink.boxes, run=code.build(), is_plain=is_plain(operator.types))


def gather_columns(operator: Operator, number: int) -> Columns | None:
    """The columns by which changes of an input are brought together: of the state's key, or of the left rows they concern.

    None where they need not be.
    """
    node = operator.node
    match node:
        case Aggregate() | TopK():
            assert operator.state is not None
            inner = node.group if isinstance(node, Aggregate) else tuple(range(len(node.types)))
            return tuple(inner[c] for c in operator.state.columns)
        case LeftJoin() | SemiJoin() if number == 1:
            writer = MatchWriter(FunctionSource("", ""), operator)
            return tuple(writer.right_of[column] for column in writer.reader(0).columns)
        case _:
            return None


def _store_sinks(sinks: list[Sink]) -> list[Sink]:
    return [sink for sink in sinks if ".store" in sink.name]


def _reached(base: Operator) -> list[Operator]:
    """All that depends on a table, inputs first."""
    found = {base.number: base}
    waiting = [base]
    while waiting:
        for consumer, _ in waiting.pop().consumers:
            if consumer.number not in found:
                found[consumer.number] = consumer
                waiting.append(consumer)
    return sorted(found.values(), key=lambda each: (each.level, each.number))


def delta_of(applied: Applied, arrangement: Arrangement) -> Delta:
    """What the step under way has changed in an arrangement."""
    return [(row[:-1], row[-1]) for row in applied.get(id(arrangement), ())]
