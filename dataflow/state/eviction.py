"""Making keys holes again, and with them everything that depends on them.

Evicting what only caches (an arrangement of a base table or of a join) concerns nobody else:
lookups compute what is missing. A stateful operator, however, drops the changes of a key it
does not hold, so every key downstream that was made from it has to go too.

Which those are is found by sending a *pattern* downstream: a row of key parts in which only
the evicted key is known. A join extends it by looking up its other inputs where the pattern
has their key; what stays unknown matches every key. So too much may be evicted, never too
little, and a group without rows evicts those who know that it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dataflow.code.lookup_code import interest
from dataflow.expressions.source import Key, text_key
from dataflow.plan.join_shape import shape_of
from dataflow.plan.node import Aggregate, Columns, Join, LeftJoin, SemiJoin, TopK, Union, source_column
from dataflow.plan.pipeline import PipelineStage, pipeline_of
from dataflow.runtime.graph import Graph
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.origins import Route, origins, routes
from dataflow.values.types import Row

Pattern = dict[int, object]
"""column → its part of a key; columns that are not in it are unknown"""
Held = tuple[Operator, Arrangement, Key]
"""A key that is filled, and where."""


def key_parts(columns: Columns, key: Key) -> Pattern:
    return {columns[0]: key} if len(columns) == 1 else dict(zip(columns, key, strict=True))


def part_of(operator: Operator, row: Row, column: int) -> object:
    function = text_key(operator.types[column])
    value = row[column]
    return value if function is None or value is None else function(value)  # type: ignore[arg-type]


class Evictor:
    """Evicts keys of one graph. `count` is the number of keys evicted so far.

    With several shards the rows that a pattern would be extended by may be elsewhere, and so
    may the keys that depend on it. Then it is not extended, and `announce` is told of every
    key that a stateful operator lost, for the others to do likewise.
    """

    def __init__(self, graph: Graph, announce: Callable[[Operator, Pattern], None] | None = None) -> None:
        self.graph = graph
        self.announce = announce
        self.looks_up = announce is None
        self.count = 0
        self._routes: dict[int, list[Route]] = {}

    def evict(self, operator: Operator, arrangement: Arrangement, key: Key) -> None:
        """Make a key a hole, and all that depends on it."""
        waiting = [(operator, arrangement, key)]
        while waiting:
            operator, arrangement, key = waiting.pop()
            found = list(self.dependents(operator, arrangement, key))
            if arrangement.evict(key):
                self.count += 1
                waiting += found
                if self.announce is not None and arrangement is operator.state:
                    self.announce(operator, key_parts(arrangement.columns, key))

    def evict_with_origins(self, operator: Operator, arrangement: Arrangement, key: Key) -> None:
        """As `evict`, and with it the state below that nothing depends on any more."""
        below = self._routes.get(id(arrangement))
        if below is None:
            below = self._routes[id(arrangement)] = routes(operator, arrangement)
        found = [(route[0], each) for route in below for each in origins(arrangement, key, route)]
        self.evict(operator, arrangement, key)
        for owner, origin in found:
            state = owner.state
            assert state is not None
            if not state.views and self.is_orphan(owner, state, origin):
                self.evict_with_origins(owner, state, origin)

    def is_orphan(self, operator: Operator, arrangement: Arrangement, key: Key) -> bool:
        """Whether the key is held and nothing depends on it."""
        return key in arrangement.index and next(self.dependents(operator, arrangement, key), None) is None

    def evict_all(self, operator: Operator, arrangement: Arrangement) -> None:
        """Make all keys holes; what depends on them goes, too, and is the caller's business."""
        for key in list(arrangement.index):
            if arrangement.evict(key):
                self.count += 1
                if self.announce is not None and arrangement is operator.state:
                    self.announce(operator, key_parts(arrangement.columns, key))

    def dependents(self, operator: Operator, arrangement: Arrangement, key: Key) -> Iterator[Held]:
        """The keys that depend on this one directly: with no other stateful operator in between."""
        if arrangement is operator.state and key in arrangement.index:
            yield from self.held_below(operator, key_parts(arrangement.columns, key))

    def evict_matching(self, operator: Operator, pattern: Pattern) -> None:
        """Rows of `operator` that match will not be heard of any more: what was made from them goes."""
        for held in list(self.held_below(operator, pattern)):
            self.evict(*held)

    def held_below(self, operator: Operator, pattern: Pattern) -> Iterator[Held]:
        """The keys made from rows of `operator` that match `pattern`."""
        for store in operator.stores.values():
            assert not store.full, f"{store.name} is full but depends on partial state"
            yield from ((operator, store, key) for key in list(matching(store, pattern)))
        for consumer, number in operator.consumers:
            for further in self.through(consumer, number, pattern):
                if consumer.state is None:
                    yield from self.held_below(consumer, further)
                else:
                    assert consumer.is_partial, f"{consumer.label} is full but depends on partial state"
                    state = consumer.state
                    yield from ((consumer, state, key) for key in list(matching(state, further)))

    def through(self, consumer: Operator, number: int, pattern: Pattern) -> Iterator[Pattern]:
        """The patterns of the consumer's rows made from rows of input `number` that match."""
        match consumer.node:
            case Union():
                yield pattern
            case Aggregate(group=group):
                yield {i: pattern[column] for i, column in enumerate(group) if column in pattern}
            case TopK(partition=partition):
                # Other rows may enter the window, so nothing but the partition is sure.
                yield {column: pattern[column] for column in partition if column in pattern}
            case Join():
                yield from self._through_join(consumer, consumer.node, number, pattern)
            case LeftJoin() | SemiJoin():
                yield from self._through_match(consumer, consumer.node, number, pattern)

    def _through_join(self, consumer: Operator, node: Join, number: int, pattern: Pattern) -> Iterator[Pattern]:
        shape = shape_of(node)
        known: dict[int, object] = {}
        for column, part in pattern.items():
            for position in shape.members[shape.position(number, column)]:
                known[position] = part
        if not self.looks_up or _is_enough(consumer, node, known):
            yield _projected(node, known)
            return
        stages = list(pipeline_of(node, number).stages[1:])
        choice = pipeline_of(node, number).choice
        while choice is not None:
            stages.extend(choice.alternatives[0].stages)
            choice = choice.alternatives[0].choice
        for extended in self._extended(consumer, node, stages, known):
            yield _projected(node, extended)

    def _extended(
        self, consumer: Operator, node: Join, stages: list[PipelineStage], known: dict[int, object]
    ) -> Iterator[dict[int, object]]:
        if not stages:
            yield known
            return
        stage, rest = stages[0], stages[1:]
        if not all(source in known for source in stage.sources):
            yield from self._extended(consumer, node, rest, known)
            return
        parts = dict(zip(stage.columns, (known[source] for source in stage.sources), strict=True))
        rows = self._rows(consumer.inputs[stage.number], stage.columns, parts)
        if rows is None:
            return
        shape = shape_of(node)
        for row in rows:
            extended = dict(known)
            for column in range(len(row)):
                part = part_of(consumer.inputs[stage.number], row, column)
                for position in shape.members[shape.position(stage.number, column)]:
                    extended[position] = part
            yield from self._extended(consumer, node, rest, extended)

    def _rows(self, operator: Operator, columns: Columns, parts: Pattern) -> list[Row] | None:
        """The rows with this key; None if it is a hole of a stateful operator, on which nobody depends."""
        arrangement = operator.reader(columns)
        assert arrangement is not None
        values = tuple(parts[c] for c in arrangement.columns)
        if None in values:
            return None
        key = values[0] if len(values) == 1 else values
        value = arrangement.index.get(key)
        if value is not None:
            rows = list(arrangement.bag(value))
        elif operator.is_partial:
            return None
        elif arrangement.full:
            return []
        else:
            rows = list(self.graph.bag_reader(operator, arrangement.columns)(key))
        return [row for row in rows if all(part_of(operator, row, c) == parts[c] for c in columns)]

    def _through_match(
        self, consumer: Operator, node: LeftJoin | SemiJoin, number: int, pattern: Pattern
    ) -> Iterator[Pattern]:
        width = len(node.left.types)
        known: dict[int, object] = {}
        if number == 0:
            known = dict(pattern)
        else:
            for left, right in node.equalities:
                if right in pattern:
                    known[left] = pattern[right]
        if number == 0 or not self.looks_up or _is_enough(consumer, node, known):
            yield _projected(node, known)
            return
        columns = tuple(sorted({left for left, _ in node.equalities}))
        arrangement_columns = next(iter(_left_lookup(node)), columns)
        if all(column in known for column in arrangement_columns):
            rows = self._rows(consumer.inputs[0], arrangement_columns, {c: known[c] for c in arrangement_columns})
            for row in rows or ():
                yield _projected(node, {c: part_of(consumer.inputs[0], row, c) for c in range(width)})
        else:
            yield _projected(node, known)


def _left_lookup(node: LeftJoin | SemiJoin) -> Iterator[Columns]:
    from dataflow.plan.pipeline import lookups_of

    return (columns for number, columns in lookups_of(node) if number == 0)


def _projected(node: Join | LeftJoin | SemiJoin, known: dict[int, object]) -> Pattern:
    """What is known of the output row."""
    outputs = None if isinstance(node, SemiJoin) else node.outputs
    pattern: Pattern = {}
    for column in range(len(node.types)):
        position = source_column(outputs, column)
        if position is not None and position in known:
            pattern[column] = known[position]
    return pattern


def _is_enough(consumer: Operator, node: Join | LeftJoin | SemiJoin, known: dict[int, object]) -> bool:
    """Whether the keys that may have to go can be told from what is known."""
    wanted = interest(consumer)
    pattern = _projected(node, known)
    return wanted is not None and all(column in pattern for _, columns in wanted for column in columns)


def matching(arrangement: Arrangement, pattern: Pattern) -> Iterator[Key]:
    """The keys held that the pattern may stand for."""
    columns = arrangement.columns
    if all(column in pattern for column in columns):
        parts = tuple(pattern[column] for column in columns)
        key = parts[0] if len(parts) == 1 else parts
        return iter((key,) if key in arrangement.index else ())
    known = [(i, pattern[column]) for i, column in enumerate(columns) if column in pattern]
    matches: Callable[[Key], bool] = lambda key: all(key[i] == part for i, part in known)  # noqa: E731
    return filter(matches, arrangement.index)
