"""Operators over several shards: every lookup happens where its key lives.

A pipeline is taken apart into *items*: look up a key of an arrangement, then continue with
its rows. An item goes to the shard of its key. What an item finds missing is filled first:
it parks, and a fill is itself a set of items that end by bringing rows to the key's shard.

When no item is under way anywhere, the pending fills of the lowest level have all their
rows, because whatever they could wait for is of a lower level. They are settled, what parked
on them goes on, and so forth until nothing is left. Levels are two for each operator: its
state, and the arrangements of its rows.

Invariant: between two exchanges all shards are at the same point of the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow.arrangement import Arrangement, Kind
from dataflow.delta import Bag, Delta, consolidate
from dataflow.eviction import part_of
from dataflow.graph import Graph
from dataflow.group_code import fresh_state, group_loader
from dataflow.join_code import reads_before
from dataflow.lookup_code import store_row
from dataflow.node import Aggregate, Base, Columns, Join, LeftJoin, SemiJoin, TopK
from dataflow.operator import Operator
from dataflow.row_code import RowCode
from dataflow.shard_messages import Item
from dataflow.sharding import shard_of
from dataflow.source import Key, Source, key_function
from dataflow.topk_code import topk_loader
from dataflow.types import Row
from dataflow.upquery import fill_sources

Target = tuple[Any, ...]
"""("out", operator): its delta. ("all", operator): its rows. ("fill", operator, columns, key): a key's rows."""
STATE: Columns = (-1,)
"""Stands for the columns of an operator's own state."""


class Fill:
    def __init__(self, operator: Operator, arrangement: Arrangement, key: Key) -> None:
        self.operator, self.arrangement, self.key = operator, arrangement, key
        self.level = 2 * operator.level + (arrangement is not operator.state)
        self.rows: Bag = {}
        self.parked: list[Item] = []


class Evaluator:
    """One shard's part in the work. `send(shard, item)` queues an item, also for this shard."""

    def __init__(self, graph: Graph, shard: int, shard_count: int, send: Callable[[int, Item], None]) -> None:
        self.graph, self.shard, self.shard_count, self.send = graph, shard, shard_count, send
        self.fills: dict[tuple[int, Columns, Key], Fill] = {}
        self.out: dict[int, Delta] = {}
        self.all_rows: dict[int, Delta] = {}
        self.gathered: dict[tuple[int, int], Delta] = {}
        self.arriving: dict[tuple[int, Columns], Delta] = {}
        self.applied: dict[tuple[int, Columns], Delta] = {}
        self.operators: dict[int, Operator] = {}
        self._codes: dict[int, RowCode] = {}
        self._stores: dict[tuple[int, Columns], tuple[Arrangement, int, int, int, Callable[[Delta], None]]] = {}
        self._loaders: dict[int, Any] = {}

    def refresh(self) -> None:
        """The graph has changed."""
        self.operators = {operator.number: operator for operator in self.graph.operators.values()}
        for operator in self.operators.values():
            for arrangement in operator.arrangements():
                name = (operator.number, STATE if arrangement is operator.state else arrangement.columns)
                arrangement.delta_of = lambda name=name: self.applied.get(name, [])

    def owner(self, key: Key) -> int:
        return shard_of(key, self.shard_count)

    def code(self, operator: Operator) -> RowCode:
        found = self._codes.get(operator.number)
        if found is None:
            found = self._codes[operator.number] = RowCode(operator)
        return found

    @property
    def pending_level(self) -> int | None:
        return min((fill.level for fill in self.fills.values()), default=None)

    # -- items

    def process(self, item: Item) -> None:
        match item:
            case ("lookup", number, columns, parts, old, then):
                self._lookup(item, self.operators[number], tuple(columns), tuple(parts), old, then)
            case ("fill", number, columns, key, row, weight):
                fill = self.fills[number, tuple(columns), key]
                # The rows of a state's key are its input's, found by exactly this key.
                if tuple(columns) == STATE or fill.arrangement.key_of(row) == key:
                    fill.rows[row] = fill.rows.get(row, 0) + weight
            case ("scan", number, columns, key):
                for row, weight in self.graph.bag_reader(self.operators[number], tuple(columns))(key).items():
                    self.send(self.owner(key), ("fill", number, columns, key, row, weight))
            case ("gather", number, given, row, weight):
                self.gathered.setdefault((number, given), []).append((row, weight))
            case ("store", number, columns, row, weight):
                self.arriving.setdefault((number, tuple(columns)), []).append((row, weight))
            case _:
                raise AssertionError(item)

    def look_up(self, operator: Operator, columns: Columns, parts: tuple[object, ...], old: bool, then: Item) -> None:
        """Continue with `then` at the shard that has the rows of `operator` with these key parts."""
        arrangement = operator.reader(columns)
        assert arrangement is not None, f"{operator.label} has no arrangement for {columns}"
        key = _key(arrangement.columns, columns, parts)
        self.send(self.owner(key), ("lookup", operator.number, columns, parts, old, then))

    def _lookup(
        self, item: Item, operator: Operator, columns: Columns, parts: tuple[object, ...], old: bool, then: Item
    ) -> None:
        arrangement = operator.reader(columns)
        assert arrangement is not None
        key = _key(arrangement.columns, columns, parts)
        value = arrangement.index.get(key)
        if value is None and not arrangement.full:
            self.want(operator, arrangement, key).parked.append(item)
            return
        before = arrangement.before.get(key) if old else None
        if before is not None:
            bag = ({before: 1} if before else {}) if arrangement.kind is Kind.UNIQUE else before
        else:
            bag = {} if value is None else arrangement.bag(value)
        extra = [(c, part) for c, part in zip(columns, parts, strict=True) if c not in arrangement.columns]
        if extra:
            bag = {row: n for row, n in bag.items() if all(part_of(operator, row, c) == part for c, part in extra)}
        self._continue(then, bag)

    def want(self, operator: Operator, arrangement: Arrangement, key: Key) -> Fill:
        """The fill of a hole on this shard, begun if it is not under way."""
        columns = STATE if arrangement is operator.state else arrangement.columns
        name = (operator.number, columns, key)
        fill = self.fills.get(name)
        if fill is None:
            fill = self.fills[name] = Fill(operator, arrangement, key)
            self._begin_fill(operator, arrangement, key, ("fill", *name))
        return fill

    def _begin_fill(self, operator: Operator, arrangement: Arrangement, key: Key, target: Target) -> None:
        node, columns = operator.node, arrangement.columns
        given = {columns[0]: key} if len(columns) == 1 else dict(zip(columns, key, strict=True))
        if isinstance(node, Base):
            for shard in range(self.shard_count):
                self.send(shard, ("scan", operator.number, columns, key))
            return
        if operator.state is not None and arrangement is not operator.state:
            held = operator.state.columns
            self.look_up(operator, held, tuple(given[c] for c in held), False, ("collect", target))
            return
        for number, inner in fill_sources(operator, arrangement):
            parts = self.code(operator).start_parts(number, inner, given)
            then: Item = ("collect", target)
            if isinstance(node, Join):
                then = ("seed_join", operator.number, number, target)
            elif isinstance(node, LeftJoin | SemiJoin):
                then = ("seed_match", operator.number, target)
            self.look_up(operator.inputs[number], inner, parts, False, then)

    def settle(self, level: int) -> None:
        """The pending fills of this level have all their rows."""
        for name, fill in [each for each in self.fills.items() if each[1].level == level]:
            del self.fills[name]
            arrangement, operator = fill.arrangement, fill.operator
            arrangement.compute = lambda key, fill=fill: self._value(fill)  # type: ignore[misc]
            arrangement.fill(fill.key)
            for item in fill.parked:
                self.send(self.shard, item)
            assert operator.number in self.operators

    def _value(self, fill: Fill) -> Any:
        operator, arrangement = fill.operator, fill.arrangement
        if arrangement is not operator.state:
            return arrangement.store(fill.rows)
        states = self.loader(operator)(fill.rows)
        if arrangement.kind is not Kind.STATE:
            return states
        return states.get(fill.key) or fresh_state(operator)()

    def loader(self, operator: Operator) -> Any:
        found = self._loaders.get(operator.number)
        if found is None:
            make = group_loader if isinstance(operator.node, Aggregate) else topk_loader
            found = self._loaders[operator.number] = make(operator)
        return found

    # -- what follows a lookup

    def _continue(self, then: Item, bag: Bag) -> None:
        match then:
            case ("collect", target):
                for row, weight in bag.items():
                    self.emit(target, row, weight)
            case ("seed_join", number, start, target):
                for row, weight in bag.items():
                    self.begin_join(self.operators[number], start, row, weight, tuple(target), False)
            case ("seed_match", number, target):
                for row, weight in bag.items():
                    self.left_row(self.operators[number], row, weight, tuple(target), False)
            case ("join", number, start, index, rows, weight, target, updating):
                self._extend_join(self.operators[number], start, index, rows, weight, tuple(target), updating, bag)
            case ("matches", number, row, weight, target):
                self._matched(self.operators[number], row, weight, tuple(target), bag)
            case ("left_rows", number, changes):
                for row, weight in bag.items():
                    self._right_changed(self.operators[number], row, weight, changes)
            case ("total", number, row, weight, hits, net):
                self._transition(self.operators[number], row, weight, hits, net, bag)
            case _:
                raise AssertionError(then)

    def emit(self, target: Target, row: Row, weight: int) -> None:
        match target:
            case ("out", number):
                self.out.setdefault(number, []).append((row, weight))
            case ("all", number):
                self.all_rows.setdefault(number, []).append((row, weight))
            case ("fill", number, columns, key):
                self.send(self.owner(key), ("fill", number, columns, key, row, weight))

    def begin_join(self, operator: Operator, start: int, row: Row, weight: int, target: Target, updating: bool) -> None:
        """Take a row of input `start` through the join. `updating`: as a change, not as of now."""
        code = self.code(operator)
        rows: list[Row | None] = [None] * len(operator.inputs)
        rows[start] = row
        if code.passes(code.stages(start)[0], rows):
            self._next_stage(operator, start, 1, rows, weight, target, updating)

    def _next_stage(
        self, operator: Operator, start: int, index: int, rows: list[Row | None], weight: int, target: Target, updating: bool
    ) -> None:
        code = self.code(operator)
        stages = code.stages(start)
        if index == len(stages):
            self.emit(target, code.output(rows), weight)
            return
        stage = stages[index]
        parts = tuple(code.part(rows, source) for source in stage.sources)
        if None not in parts:
            old = updating and reads_before(operator, start, stage.number)
            then = ("join", operator.number, start, index, tuple(rows), weight, target, updating)
            self.look_up(operator.inputs[stage.number], stage.columns, parts, old, then)

    def _extend_join(
        self,
        operator: Operator,
        start: int,
        index: int,
        rows: tuple[Row | None, ...],
        weight: int,
        target: Target,
        updating: bool,
        bag: Bag,
    ) -> None:
        code = self.code(operator)
        stage = code.stages(start)[index]
        for row, count in bag.items():
            extended = list(rows)
            extended[stage.number] = row
            if code.passes(stage, extended):
                self._next_stage(operator, start, index + 1, extended, weight * count, target, updating)

    def left_row(self, operator: Operator, row: Row, weight: int, target: Target, updating: bool) -> None:
        """Take a row of the left input of a left or semi join through it."""
        code = self.code(operator)
        columns = code.lookup_of(1)
        parts = tuple(part_of(operator.inputs[0], row, code.left_of[c]) for c in columns)
        if None in parts:
            self._matched(operator, row, weight, target, {})
            return
        old = updating and reads_before(operator, 0, 1)
        self.look_up(operator.inputs[1], columns, parts, old, ("matches", operator.number, row, weight, target))

    def _matched(self, operator: Operator, row: Row, weight: int, target: Target, bag: Bag) -> None:
        code, node = self.code(operator), operator.node
        matches = {right: n for right, n in bag.items() if code.is_match(row, right)}
        if isinstance(node, SemiJoin):
            if bool(matches) != node.negated:
                self.emit(target, row, weight)
            return
        for right, count in (matches or {code.nulls: 1}).items():
            self.emit(target, code.output([row, right]), weight * count)

    def right_delta(self, operator: Operator, delta: Delta) -> None:
        """Changes of the right input, all those of a key being on this shard."""
        code = self.code(operator)
        groups: dict[Key, Delta] = {}
        for row, weight in consolidate(delta):
            parts = tuple(part_of(operator.inputs[1], row, right) for _, right in operator.node.equalities)  # type: ignore[union-attr]
            if None not in parts:
                groups.setdefault(parts, []).append((row, weight))
        columns = code.lookup_of(0)
        for changes in groups.values():
            parts = tuple(part_of(operator.inputs[1], changes[0][0], code.right_of[c]) for c in columns)
            self.look_up(operator.inputs[0], columns, parts, False, ("left_rows", operator.number, tuple(changes)))

    def _right_changed(self, operator: Operator, row: Row, weight: int, changes: tuple[tuple[Row, int], ...]) -> None:
        code = self.code(operator)
        hits = tuple((right, n) for right, n in changes if code.is_match(row, right))
        net = sum(n for _, n in hits)
        if net:
            columns = code.lookup_of(1)
            parts = tuple(part_of(operator.inputs[0], row, code.left_of[c]) for c in columns)
            self.look_up(operator.inputs[1], columns, parts, False, ("total", operator.number, row, weight, hits, net))
        elif hits:
            self._transition(operator, row, weight, hits, 0, {})

    def _transition(
        self, operator: Operator, row: Row, weight: int, hits: tuple[tuple[Row, int], ...], net: int, bag: Bag
    ) -> None:
        code, node = self.code(operator), operator.node
        target = ("out", operator.number)
        total = sum(n for right, n in bag.items() if code.is_match(row, right))
        appears, vanishes = bool(net) and total == net, bool(net) and not total
        if isinstance(node, SemiJoin):
            if appears or vanishes:
                self.emit(target, row, weight if appears != node.negated else -weight)
            return
        if appears:
            self.emit(target, code.output([row, code.nulls]), -weight)
        for right, n in hits:
            self.emit(target, code.output([row, right]), weight * n)
        if vanishes:
            self.emit(target, code.output([row, code.nulls]), weight)

    # -- arrangements

    def route_to_stores(self, operator: Operator, rows: Delta) -> None:
        """Send the operator's rows to the shards of its arrangements."""
        for store in operator.stores.values():
            for row, weight in rows:
                self.send(self.owner(store.key_of(row)), ("store", operator.number, store.columns, row, weight))

    def apply_arrived(self) -> None:
        """Bring the arrangements of this shard up to date with what was sent to them."""
        for (number, columns), rows in self.arriving.items():
            operator = self.operators[number]
            store = operator.stores[columns]
            delta = consolidate(rows)
            self.applied[number, columns] = delta
            self._storing(operator, store)(delta)
        self.arriving.clear()

    def _storing(self, operator: Operator, store: Arrangement) -> Callable[[Delta], None]:
        at = (operator.number, store.columns)
        found = self._stores.get(at)
        if found is None or found[0] is not store or found[1:4] != _storing_facts(store):
            code = Source("store", "delta")
            with code.block("for row, w in delta:"):
                store_row(code, store, "row", "w", operator.types)
            found = self._stores[at] = (store, *_storing_facts(store), code.build())
        return found[4]


def gather_key(operator: Operator, number: int) -> Callable[[Row], Key]:
    """Where rows of an input are gathered: by the state's key, or by what a match is made on."""
    node = operator.node
    if isinstance(node, Aggregate | TopK):
        assert operator.state is not None
        inner = node.group if isinstance(node, Aggregate) else tuple(range(len(node.types)))
        columns = tuple(inner[c] for c in operator.state.columns)
    else:
        assert isinstance(node, LeftJoin | SemiJoin)
        columns = tuple(right for _, right in sorted(node.equalities))
    return key_function(columns, operator.inputs[number].types)


def _storing_facts(store: Arrangement) -> tuple[int, int, int]:
    """What the code that stores rows depends on, besides the arrangement itself."""
    return store.recorders, store.views, len(store.orders)


def _key(wanted: Columns, columns: Columns, parts: tuple[object, ...]) -> Key:
    found = dict(zip(columns, parts, strict=True))
    key = tuple(found[c] for c in wanted)
    return key[0] if len(key) == 1 else key
