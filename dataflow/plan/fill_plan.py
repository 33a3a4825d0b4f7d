"""Fills and loads over several shards: the rows of keys, or all rows, computed where they lie.

A fill is the pipeline of the updates seeded with keys: it starts at the input that the key's columns
come from, and its rows end on the shard of the key. Many keys go through it together. What it reads
it looks up in an arrangement if the operator holds one for its updates, or in the state of an aggregate
or top-k; else it goes on upstream, down to the tables, of which every shard has a part.

A load is the same, seeded with all rows that each shard has of the first input, some in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from dataflow.code.lookup_code import each_row, fetch
from dataflow.code.path_code import At, Finish, JoinPath, MatchPath, Track
from dataflow.expressions.source import Function, FunctionSource, Key, key_function
from dataflow.plan.exchange import Boxes, Leg, Place, Prefix, Shards
from dataflow.plan.key_tracing import input_column, start_of
from dataflow.plan.node import Aggregate, Base, Columns, Join, LeftJoin, SemiJoin, Union
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator, below
from dataflow.runtime.upquery import held_reader, start_lookups
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Bag, Change, merged, negated
from dataflow.values.types import Kind, SqlType

NOWHERE = object()
LOADED_AT_ONCE = 10_000
"""So many rows of a load begin in one round: what bundles carry is bounded by it."""

Parts = dict[str, SqlType]
"""Names of variables that hold parts of a key, which a path carries along."""
Collect = Callable[[list[Prefix]], None]
"""Takes flat rows, on the shard of their key."""


def key_columns(operator: Operator, arrangement: Arrangement) -> Columns:
    """The columns of the rows that an arrangement is computed from that make up its key."""
    node = operator.node
    if arrangement is operator.state and isinstance(node, Aggregate):
        return tuple(node.group[column] for column in arrangement.columns)
    return arrangement.columns


class FillPlan:
    """The legs of one arrangement's fills. `seeds` take index keys, all of which live on this shard."""

    def __init__(
        self, shards: Shards, graph: Graph, operator: Operator, arrangement: Arrangement, name: str,
        boxes_of: Callable[[str], Boxes], collect: Collect,
    ) -> None:  # fmt: skip
        self.shards, self.graph, self.operator, self.arrangement = shards, graph, operator, arrangement
        self._track = Track(shards, name, operator, boxes_of)
        self._names = 0
        self.surroundings = surroundings(operator)
        """What the plan was made for."""
        is_state = arrangement is operator.state
        self._types = operator.inputs[0].types if is_state else operator.types
        columns = arrangement.columns
        self.key_columns = key_columns(operator, arrangement)
        self.collecting = self._track.leg(types=self._types)
        self.collecting.run = collect
        self.seeds = self._track.leg()
        code = FunctionSource(f"seed_{name.replace('.', '_')}", "rows")
        code.open("for key in rows:")
        self._parts = [f"q{column}" for column in columns]
        code.line(f"{', '.join(self._parts)} = key")
        at = At(code, self.seeds, None, False)
        if is_state:
            given = sorted(zip(self.key_columns, self._parts, strict=True))
            inner = tuple(column for column, _ in given)
            self._read(at, operator, 0, inner, [part for _, part in given], {}, self._finish)
        else:
            self._rows_by(at, operator, columns, self._parts, {}, self._finish)
        self.seeds.run = code.build()
        self._has_decimals = [self._types[column].kind is Kind.DECIMAL for column in self.key_columns]

    def seed(self, keys: list[Key]) -> None:
        """Ask for the rows of keys. Where the columns are no DECIMALs, bundles mark none: those keys that are go as the numbers that they equal."""
        if len(self._has_decimals) == 1:
            found = [key for each in keys if (key := _sent(each, self._has_decimals[0])) is not NOWHERE]
        else:
            tuples = ([_sent(part, marked) for part, marked in zip(each, self._has_decimals)] for each in keys)
            found = [tuple(each) for each in tuples if NOWHERE not in each]
        self.seeds.run(found)

    @property
    def legs(self) -> list[Leg]:
        return self._track.legs

    def _finish(self, at: At, row: str, weight: str) -> None:
        """A row goes to the shard of its key: it has the one that it was found by."""
        code = at.code
        x, key = code.fresh("x"), code.fresh("k")
        code.line(f"{x} = {row}")
        code.line(f"{key} = {code.row_key(x, self.key_columns, self._types)}")
        target = self.shards.owner_source(code, key, [self._types[c] for c in self.key_columns])
        self.shards.send(code, self.collecting, target, [f"*{x}", weight])

    def _fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}_"

    def _rows_by(
        self, at: At, operator: Operator, columns: Columns, parts: list[str], carried: Parts, then: Finish
    ) -> None:
        """The rows of an operator whose `columns` have the key `parts`, from its inputs."""
        node = operator.node
        if isinstance(node, Base):
            self._scan(at, operator, columns, parts, carried, then)
            return
        if operator.state is not None:
            self._look_up(at, operator, operator.state, columns, parts, carried, then)
            return
        for number, inner in start_lookups(node, columns):
            # Several columns may copy the one that the input is looked up by; the others are checked.
            chosen = [next(c for c in columns if input_column(node, number, c) == each) for each in inner]
            unsettled = [c for c in columns if c not in chosen]
            kept = carried | {parts[columns.index(c)]: operator.types[c] for c in unsettled}
            given = [parts[columns.index(c)] for c in chosen]
            checked = self._checked(operator, unsettled, columns, parts, then)
            top = at.code.depth
            through = self._through(operator, number, kept, checked, held_reader(operator, operator.inputs[number], inner))
            self._read(at, operator, number, inner, given, kept, through)
            at.code.close(top)

    def _checked(
        self, operator: Operator, unsettled: Sequence[int], columns: Columns, parts: list[str], then: Finish
    ) -> Finish:
        def check(at: At, row: str, weight: str) -> None:
            code = at.code
            if unsettled:
                x = code.fresh("x")
                code.line(f"{x} = {row}")
                row = x
            for column in unsettled:
                code.open(f"if {code.part(f'{row}[{column}]', operator.types[column])} == {parts[columns.index(column)]}:")
            then(at, row, weight)

        return check

    def _through(
        self, operator: Operator, number: int, carried: Parts, then: Finish, held: Arrangement | None
    ) -> Finish:
        """Rows of an input, read from an arrangement `held` if there is one, go on through the operator."""
        source = operator.inputs[number]
        is_read = held is not None or isinstance(source.node, Base) or source.state is not None
        return lambda at, row, weight: go_through(self._track, operator, number, carried, then, at, row, weight, is_read)

    def _read(
        self, at: At, user: Operator, number: int, columns: Columns, parts: list[str], carried: Parts, then: Finish
    ) -> None:
        """The rows of an input with a key."""
        owner = user.inputs[number]
        held = held_reader(user, owner, columns)
        if held is None:
            self._rows_by(at, owner, columns, parts, carried, then)
        else:
            self._look_up(at, owner, held, columns, parts, carried, then)

    def _look_up(
        self, at: At, owner: Operator, held: Arrangement, columns: Columns, parts: list[str], carried: Parts, then: Finish
    ) -> None:
        """Go to where the key lives in an arrangement whose columns are some of `columns`."""
        shards = self.shards
        given = dict(zip(columns, parts, strict=True))
        names = {column: self._fresh("d") for column in columns}
        types = [owner.types[column] for column in columns]
        sources = [given[column] for column in held.columns]
        is_here = sources == self._parts
        leg = self._track.leg(at.leg, not is_here, [*types, *carried.values()])
        own_types = [owner.types[column] for column in held.columns]
        target = str(shards.shard) if is_here else shards.owner_source(at.code, _key(sources), own_types)
        shards.send(at.code, leg, target, [*parts, *carried])
        code = self._track.source(leg, [*names.values(), *carried])
        here = _key([names[column] for column in held.columns])
        code.line(f"k = {here}")
        missing = () if held.full else shards.parking(code, owner, held, leg, "k")
        row = self._fresh("y")
        weight = each_row(code, held, fetch(code, held, "k", missing=missing), row)
        for column in columns:
            if column not in held.columns:
                code.open(f"if {code.part(f'{row}[{column}]', owner.types[column])} == {names[column]}:")
        then(At(code, leg, held.columns, False), row, weight)
        leg.run = code.build()

    def _scan(self, at: At, owner: Operator, columns: Columns, parts: list[str], carried: Parts, then: Finish) -> None:
        """Ask all shards for their rows of a table."""
        types = [owner.types[column] for column in columns]
        leg = self._track.leg(at.leg, True, [*types, *carried.values()])
        with at.code.block(f"for box in {at.code.constant(leg.boxes)}:"):
            at.code.line(f"box.append(({', '.join([*parts, *carried])},))")
        code = FunctionSource(f"leg_{leg.name.replace('.', '_')}", "rows")
        read = code.constant(table_reader(self.graph, owner, columns))
        code.open(f"for p, bag in zip(rows, {read}(rows)):")
        names = [self._fresh("d") for _ in columns] + list(carried)
        code.line(f"{', '.join(names)}, = p")
        row, weight = self._fresh("y"), self._fresh("m")
        code.open(f"for {row}, {weight} in bag.items():")
        then(At(code, leg, None, False), row, weight)
        leg.run = code.build()


class LoadPlan:
    """The legs that bring all rows of an operator (its input, for a state) to the shards of an arrangement's keys."""

    def __init__(
        self, shards: Shards, graph: Graph, operator: Operator, arrangement: Arrangement, name: str,
        boxes_of: Callable[[str], Boxes], collect: Collect,
    ) -> None:  # fmt: skip
        self.shards, self.graph, self.operator = shards, graph, operator
        self._track = Track(shards, name, operator, boxes_of)
        source = operator.inputs[0] if arrangement is operator.state else operator
        columns = key_columns(operator, arrangement)
        self.collecting = self._track.leg(types=source.types)
        self.collecting.run = collect
        self._starts: list[tuple[Callable[[], Iterable[Change]], Function]] = []
        self._rest: list[tuple[Iterator[Change], Function]] = []

        def finish(at: At, row: str, weight: str) -> None:
            code = at.code
            x, key = code.fresh("x"), code.fresh("k")
            code.line(f"{x} = {row}")
            code.line(f"{key} = {code.row_key(x, columns, source.types)}")
            target = shards.owner_source(code, key, [source.types[c] for c in columns])
            shards.send(code, self.collecting, target, [f"*{x}", weight])

        self._all(source, finish)

    @property
    def legs(self) -> list[Leg]:
        return self._track.legs

    def start(self) -> None:
        self._rest = [(iter(rows()), function) for rows, function in self._starts]

    @property
    def has_more(self) -> bool:
        """Whether not all rows of this shard have begun."""
        return bool(self._rest)

    def run_some(self) -> None:
        """Begin with the next rows."""
        if self._rest:
            rows, function = self._rest[0]
            some = list(islice(rows, LOADED_AT_ONCE))
            function(some)
            if len(some) < LOADED_AT_ONCE:
                del self._rest[0]

    def _all(self, operator: Operator, then: Finish) -> None:
        """Every row of an operator that this shard can begin with."""
        graph, node = self.graph, operator.node
        loaded = next((each for each in operator.arrangements() if graph.is_loaded(each)), None)
        if loaded is not None or isinstance(node, Base):
            place: Place = None if loaded is None else loaded.columns
            rows = (lambda: _held(graph, loaded)) if loaded is not None else (lambda: graph.stream(operator))
            leg = self._track.leg()
            code = FunctionSource(f"all_{leg.name.replace('.', '_')}", "rows")
            code.open("for y0_, m0_ in rows:")
            then(At(code, leg, place, False), "y0_", "m0_")
            self._starts.append((rows, code.build()))
            return
        if isinstance(node, Union):
            for each in operator.inputs:
                self._all(each, then)
            return
        assert isinstance(node, Join | LeftJoin | SemiJoin), f"{operator.label} has no state"
        start = start_of(node, ())[0] if isinstance(node, Join) else 0
        source = operator.inputs[start]
        is_read = isinstance(source.node, Base) or any(graph.is_loaded(each) for each in source.arrangements())
        self._all(source, lambda at, row, weight: go_through(self._track, operator, start, {}, then, at, row, weight, is_read))


def go_through(
    track: Track, operator: Operator, number: int, carried: Parts, then: Finish, at: At, row: str, weight: str, is_read: bool
) -> None:
    """A row of an input goes on through the operator. `is_read`: it was read where it is kept, not made by another operator."""
    node = operator.node
    if not isinstance(node, Join | LeftJoin | SemiJoin):
        then(at, row, weight)
        return
    begun = at
    if not is_read:
        at = track.restarted(at, row, operator.inputs[number].types, carried, weight)
        row, weight = "y0_", "w"
    at.code.line(f"r{number} = {row}")
    if isinstance(node, Join):
        JoinPath(track, operator, number, False, carried, then).begin(at, weight)
    else:
        MatchPath(track, operator, False, carried, then).begin(at, weight)
    if at is not begun:
        at.leg.run = at.code.build()


def surroundings(operator: Operator) -> frozenset[tuple[object, ...]]:
    """What can be read of all that an operator is made from."""
    return frozenset(
        (each.number, tuple(map(id, each.arrangements())), tuple(id(used) for _, used in each.uses))
        for each in below(operator).values()
    )


def table_reader(graph: Graph, owner: Operator, columns: Columns) -> Callable[[list[Prefix]], Iterator[Bag]]:
    """prefixes that begin with a key → this shard's rows of a table for each, as of now."""
    node = owner.node
    assert isinstance(node, Base)
    table, width = node.table, len(columns)
    key_of = key_function(columns, node.types)

    def read(rows: list[Prefix]) -> Iterator[Bag]:
        keys: list[Key] = [row[0] if width == 1 else row[:width] for row in rows]
        found = graph.base_rows(node, columns, list(dict.fromkeys(keys)))
        pending: dict[Key, list[Change]] = {}
        for change in graph.pending.get(table, ()):
            pending.setdefault(key_of(change[0]), []).append(change)
        bags: dict[Key, Bag] = {}
        for key in keys:
            bag = bags.get(key)
            if bag is None:
                bag = dict.fromkeys(found[key], 1)
                graph.spend(len(bag))
                bags[key] = bag = merged(bag, negated(pending[key])) if key in pending else bag
            yield bag

    return read


def _held(graph: Graph, arrangement: Arrangement) -> Iterator[Change]:
    for value in list(arrangement.index.values()):
        bag = arrangement.bag(value)
        graph.spend(len(bag))
        yield from bag.items()


def _sent(part: Any, is_marked: bool) -> Any:
    """A part of a key as a bundle carries it; `NOWHERE` if no value of the column equals it."""
    if is_marked or part.__class__ is not Decimal:
        return part
    if part == part.to_integral_value():
        return int(part)
    return float(part) if float(part) == part else NOWHERE


def _key(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
