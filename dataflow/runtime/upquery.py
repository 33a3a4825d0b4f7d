"""Upqueries: the rows of a key, computed as of now from what is upstream.

An upquery is the join's own pipeline seeded with the key instead of a change: it starts at
the input that the key's columns come from. Each operator gets one function for each set of
columns it is asked by; whatever that looks up and does not find is computed in turn, down to
the base tables' source. Nothing changes while it runs, so its result is a snapshot.

What is read on the way is told to `Graph.spend`, which may put an end to it: keys that were
filled until then stay, the others remain holes. All rows of an operator, for full state, come
as a stream, so that nothing but that state is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dataflow.code.join_code import join_computer, join_stream
from dataflow.code.match_code import match_computer, match_stream
from dataflow.code.topk_code import topk_lead
from dataflow.expressions.expression import Column
from dataflow.expressions.source import Key, key_function
from dataflow.plan.key_tracing import start_of, traced
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
from dataflow.runtime.operator import BagReader, Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Bag, Change, Delta, merged, negated
from dataflow.values.types import INTEGERS, Row

if TYPE_CHECKING:
    from dataflow.runtime.graph import Graph

CHUNK_ROWS = 1024
LEAD_CHUNK_ROWS = 64


class BaseSource(Protocol):
    """The truth of base tables, as of the epoch being applied (all of its changes included)."""

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        """The rows of each key, a key being what `dataflow.expressions.source.value_key` makes of values.

        Only asked for columns that are indexed. Where a key has many rows, most of them are
        better read when they are gone through.
        """
        ...

    def scan(self, table: int) -> Iterable[Row]: ...

    def is_indexed(self, table: int, columns: Columns) -> bool:
        """Whether `lookup` can find rows by these columns."""
        ...


@runtime_checkable
class OrderedSource(Protocol):
    """A source that has the rows of a table in the order of its primary key."""

    def in_key_order(self, table: int, descending: bool) -> Iterable[Row]: ...


class Upqueries:
    """Makes the functions that answer lookups of a graph's operators."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def bag_reader(self, operator: Operator, columns: Columns) -> BagReader:
        """A function that gives the operator's rows with a key in `columns`, as of now."""
        found = operator.computers.get(columns)
        if found is None:
            found = operator.computers[columns] = self._make_reader(operator, columns)
        return found

    def _make_reader(self, operator: Operator, columns: Columns) -> BagReader:
        node = operator.node
        if operator.state is not None:
            return self._state_reader(operator, operator.state, columns)
        match node:
            case Base():
                return self._base_reader(node, columns)
            case Join():
                start, given = start_of(node, columns)
                return join_computer(operator, columns, self._reader_of_input(operator, start, given), start, given)
            case LeftJoin() | SemiJoin():
                outputs = node.outputs if isinstance(node, LeftJoin) else None
                positions = {source_column(outputs, c) for c in columns}
                inner = tuple(sorted(p for p in positions if p is not None and p < len(node.left.types)))
                given = traced(node.left, inner)
                return match_computer(operator, columns, self._reader_of_input(operator, 0, given), given)
            case Union():
                return self._union_reader(operator, columns)
            case _:
                raise AssertionError(node)

    def _reader_of_input(self, operator: Operator, number: int, columns: Columns) -> BagReader:
        """As `bag_reader` for an input, through an arrangement if the operator holds one for its updates.

        What an upquery reads there, the next change of its key will want again. A full state
        gets an arrangement if it has none by these columns.
        """
        owner = operator.inputs[number]
        state = owner.state
        if state is not None and state.full and columns and columns != state.columns and columns not in owner.stores:
            self.graph.acquire(operator, owner, columns)
        store = owner.stores.get(columns)
        if store is None or not any(each is store for _, each in operator.uses):
            return self.bag_reader(owner, columns)
        return self._store_reader(store)

    def stream(self, operator: Operator) -> Iterator[Change]:
        """All rows of the operator as of now, from state that has them all if there is some."""
        loaded = next((each for each in operator.arrangements() if self.graph.is_loaded(each)), None)
        if loaded is not None:
            return (change for value in loaded.index.values() for change in self._weighed(loaded.bag(value)).items())
        match operator.node:
            case Base(table=table):
                if self.graph.pending.get(table):
                    return iter(self.bag_reader(operator, ())(()).items())
                rows = self._spent(self.graph.source.scan(table))
                return ((row, 1) for chunk in rows for row in chunk)
            case Join():
                start, _ = start_of(operator.node, ())
                return join_stream(operator, start)(self.stream(operator.inputs[start]))
            case LeftJoin() | SemiJoin():
                return match_stream(operator)(self.stream(operator.inputs[0]))
            case Union():
                return (change for each in operator.inputs for change in self.stream(each))
            case _:
                raise AssertionError(f"{operator.label} has no state")

    def _spent(self, rows: Iterable[Row], chunk_rows: int = CHUNK_ROWS) -> Iterator[list[Row]]:
        """The rows in chunks, each accounted for."""
        rest = iter(rows)
        while chunk := list(islice(rest, chunk_rows)):
            self.graph.spend(len(chunk))
            yield chunk

    def _weighed(self, bag: Bag) -> Bag:
        self.graph.spend(len(bag))
        return bag

    def lead_reader(self, operator: Operator, columns: Columns) -> Callable[[Key], Any] | None:
        """What computes a partition of a top-k from the first rows of a table; None if no index has them in its order.

        That is where the order begins with an integer that is the table's primary key. The reader answers None where that takes too long.
        """
        node = operator.node
        assert isinstance(node, TopK)
        base, source = node.input, self.graph.source
        first = node.order[0].expression if node.order else None
        if not (isinstance(base, Base) and isinstance(first, Column) and isinstance(source, OrderedSource)):
            return None
        if base.primary_key != (first.index,) or base.types[first.index].kind not in INTEGERS or columns != node.partition:
            return None
        table, descending, lead = base.table, node.order[0].descending, topk_lead(operator)

        def read(key: Key) -> Any:
            ordered = self.graph.source
            if self.graph.pending.get(table) or not isinstance(ordered, OrderedSource):
                return None
            return lead(key, chain.from_iterable(self._spent(ordered.in_key_order(table, descending), LEAD_CHUNK_ROWS)))

        return read

    def base_rows(self, node: Base, columns: Columns, keys: Sequence[Key]) -> dict[Key, Iterable[Row]]:
        """The rows of each key as of now, from the source."""
        source, table = self.graph.source, node.table
        if source.is_indexed(table, columns):
            return dict(zip(keys, source.lookup(table, columns, keys), strict=True))
        found: dict[Key, list[Row]] = {key: [] for key in keys}
        key_of, find = key_function(columns, node.types), found.get
        for chunk in self._spent(source.scan(table)):
            for row in chunk:
                rows = find(key_of(row))
                if rows is not None:
                    rows.append(row)
        return dict(found)

    def _union_reader(self, operator: Operator, columns: Columns) -> BagReader:
        """All inputs are looked up by the columns that all of them can be looked up by."""
        common = traced(operator.node, columns)
        readers = [self._reader_of_input(operator, i, common) for i in range(len(operator.inputs))]
        if common == columns:
            return lambda key: _added(read(key) for read in readers)
        positions = [columns.index(c) for c in common]
        key_of = key_function(columns, operator.types)

        def read_filtered(key: Key) -> Bag:
            parts = [key[i] for i in positions] if len(columns) > 1 else []
            inner = parts[0] if len(parts) == 1 else tuple(parts)
            return {row: n for row, n in _added(read(inner) for read in readers).items() if key_of(row) == key}

        return read_filtered

    def _base_reader(self, node: Base, columns: Columns) -> BagReader:
        table, key_of = node.table, key_function(columns, node.types)
        ready = self.graph.prefetched.setdefault((table, columns), {})
        is_indexed = bool(columns) and self.graph.source.is_indexed(table, columns)

        def read(key: Key) -> Bag:
            rows = ready.pop(key, None) if ready else None
            if rows is None:
                if is_indexed:
                    rows = self.graph.source.lookup(table, columns, (key,))[0]
                else:
                    rows = self.base_rows(node, columns, (key,))[key] if columns else self.graph.source.scan(table)
            bag: Bag
            if isinstance(rows, list):
                self.graph.spend(len(rows))
                bag = dict.fromkeys(rows, 1)
            else:
                bag = {row: 1 for chunk in self._spent(rows) for row in chunk}
            pending = self.graph.pending.get(table)
            if not pending:
                return bag
            return merged(bag, negated(indexed(pending).get(key, ())))

        indexed = _index_of_delta(key_of)
        return read

    def _store_reader(self, store: Arrangement) -> BagReader:
        def read(key: Key) -> Bag:
            value = store.index.get(key)
            if value is None:
                if store.full:
                    return {}
                return store.bag(store.fill(key))
            bag = store.bag(value)
            self.graph.spend(len(bag))
            return bag

        return read

    def _state_reader(self, operator: Operator, state: Arrangement, columns: Columns) -> BagReader:
        if state.full:
            if not columns:
                return lambda key: {row: n for value in state.index.values() for row, n in state.bag(value).items()}
            owner = operator.reader(columns)
            arrangement = state if owner is None else owner
        else:
            arrangement = state
        positions = [columns.index(c) for c in arrangement.columns if c in columns]
        exact = arrangement.columns == columns
        scan = len(positions) < len(arrangement.columns)
        assert arrangement.full or not scan, f"{arrangement.name} is partial and read without its key"
        key_of = key_function(columns, operator.types)

        def read(key: Key) -> Bag:
            if scan:
                self.graph.spend(len(arrangement.index))
                values = list(arrangement.index.values())
                bag = {row: n for value in values for row, n in arrangement.bag(value).items()}
            else:
                inner = key if exact else key[positions[0]] if len(positions) == 1 else tuple(key[i] for i in positions)
                value = arrangement.index.get(inner)
                if value is None:
                    if arrangement.full:
                        return {}
                    value = arrangement.fill(inner)
                bag = arrangement.bag(value)
            return bag if exact else {row: n for row, n in bag.items() if key_of(row) == key}

        return read


def fill_sources(operator: Operator, arrangement: Arrangement) -> list[tuple[int, Columns]]:
    """Which lookups of its inputs a fill of the arrangement starts with: (input, columns)."""
    if operator.state is not None and arrangement is not operator.state:
        return []
    return start_lookups(operator.node, arrangement.columns)


def start_lookups(node: Node, columns: Columns) -> list[tuple[int, Columns]]:
    """Which lookups of its inputs a lookup of a node by `columns` starts with: (input, columns)."""
    match node:
        case Join():
            return [start_of(node, columns)]
        case LeftJoin() | SemiJoin():
            outputs = node.outputs if isinstance(node, LeftJoin) else None
            positions = {source_column(outputs, c) for c in columns}
            inner = tuple(sorted(p for p in positions if p is not None and p < len(node.left.types)))
            return [(0, traced(node.left, inner))]
        case Union():
            return [(number, traced(node, columns)) for number in range(len(node.inputs))]
        case Aggregate():
            return [(0, tuple(sorted(node.group[c] for c in columns)))]
        case TopK():
            return [(0, columns)]
        case Base():
            return []


def held_reader(user: Operator, owner: Operator, columns: Columns) -> Arrangement | None:
    """The arrangement of an input that a fill of `user` looks up, if it is to look one up."""
    found = owner.reader(columns)
    if found is None or found is owner.state or found.full:
        return found
    return found if any(each is found for _, each in user.uses) else None


def needed_stores(operator: Operator, arrangement: Arrangement) -> Iterator[tuple[Operator, Operator, Columns]]:
    """(user, owner, columns): what fills of an arrangement have to find, because it cannot be read elsewhere by these columns."""
    for number, columns in fill_sources(operator, arrangement):
        yield from _needed_stores(operator, operator.inputs[number], columns)


def _needed_stores(user: Operator, owner: Operator, columns: Columns) -> Iterator[tuple[Operator, Operator, Columns]]:
    state = owner.state
    if held_reader(user, owner, columns) is not None:
        return
    if state is not None or (isinstance(owner.node, Base) and not owner.is_indexed(columns)):
        yield user, owner, columns
        return
    for number, inner in start_lookups(owner.node, columns):
        yield from _needed_stores(owner, owner.inputs[number], inner)


def _index_of_delta(key_of: Callable[[Row], Key]) -> Callable[[Delta], dict[Key, Delta]]:
    """delta → its changes by key; made once for as long as the delta is the same."""
    last: list[tuple[Delta, dict[Key, Delta]]] = []

    def index(delta: Delta) -> dict[Key, Delta]:
        if not last or last[0][0] is not delta:
            by_key: dict[Key, Delta] = {}
            for change in delta:
                by_key.setdefault(key_of(change[0]), []).append(change)
            last[:] = [(delta, by_key)]
        return last[0][1]

    return index


def _added(bags: Iterable[Bag]) -> Bag:
    total: Bag = {}
    for bag in bags:
        for row, weight in bag.items():
            total[row] = total.get(row, 0) + weight
    return total
