"""How one change of a table, or all rows at once, go through the operators of several shards.

Each is a program that all shards run in step: between two exchanges (`quiet`) everyone is at
the same line. Levels go one by one, so whatever an operator reads is up to date before it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from dataflow.arrangement import Arrangement, Kind
from dataflow.delta import Delta, consolidate
from dataflow.distributed import Evaluator, gather_key
from dataflow.node import Aggregate, Base, Join, LeftJoin, SemiJoin, TopK, Union
from dataflow.operator import Operator
from dataflow.shard_messages import Item

Inbox = tuple[list[Item], bool, int | None]
Program = Generator[None, Inbox, None]


class Steps:
    def __init__(self, evaluator: Evaluator, quiet: Callable[[], Program]) -> None:
        """`quiet` exchanges items until there are none, anywhere."""
        self.evaluator = evaluator
        self._quiet = quiet

    def load(self, operator: Operator, arrangement: Arrangement) -> Program:
        """Fill a new full arrangement with all its rows."""
        evaluator = self.evaluator
        is_state = arrangement is operator.state
        source = operator.inputs[0] if is_state else operator
        yield from self._produce(source)
        rows = evaluator.all_rows.pop(source.number, [])
        evaluator.all_rows.clear()
        key_of = gather_key(operator, 0) if is_state else arrangement.key_of
        for row, weight in rows:
            evaluator.send(evaluator.owner(key_of(row)), ("gather", operator.number, -1, row, weight))
        yield from self._quiet()
        delta = consolidate(evaluator.gathered.pop((operator.number, -1), []))
        if not is_state:
            arrangement.load(delta)
        elif arrangement.kind is Kind.STATE:
            states = evaluator.loader(operator)(dict(delta))
            if operator.node.group or evaluator.owner(()) == self.evaluator.shard:  # type: ignore[union-attr]
                arrangement.index.update(states)
        elif evaluator.owner(()) == self.evaluator.shard:
            arrangement.index[()] = evaluator.loader(operator)(dict(delta))

    def _produce(self, operator: Operator) -> Program:
        """Every row of the operator, each on some shard, in `all_rows`."""
        evaluator, node = self.evaluator, operator.node
        found: Delta = []
        target = ("all", operator.number)
        if operator.state is not None:
            for value in operator.state.index.values():
                found.extend(operator.state.bag(value).items())
        elif isinstance(node, Base):
            found.extend(self.evaluator.graph.bag_reader(operator, ())(()).items())
        elif isinstance(node, Union):
            for each in operator.inputs:
                yield from self._produce(each)
                found.extend(evaluator.all_rows.pop(each.number, []))
        else:
            yield from self._produce(operator.inputs[0])
            for row, weight in evaluator.all_rows.pop(operator.inputs[0].number, []):
                if isinstance(node, Join):
                    evaluator.begin_join(operator, 0, row, weight, target, False)
                else:
                    evaluator.left_row(operator, row, weight, target, False)
            yield from self._quiet()
        if found:
            evaluator.all_rows.setdefault(operator.number, []).extend(found)

    def step(self, base: Operator) -> Program:
        """Take the change of one table through all that depends on it, level by level."""
        evaluator = self.evaluator
        reached = {base.number: base}
        waiting = [base]
        while waiting:
            for consumer, _ in waiting.pop().consumers:
                if consumer.number not in reached:
                    reached[consumer.number] = consumer
                    waiting.append(consumer)
        yield from self._update_stores([base])
        for level in sorted({each.level for each in reached.values()} - {base.level}):
            operators = sorted((each for each in reached.values() if each.level == level), key=lambda each: each.number)
            for operator in operators:
                for number, each in enumerate(operator.inputs):
                    self._start(operator, number, evaluator.out.get(each.number, []))
            yield from self._quiet()
            for operator in operators:
                self._finish_gathered(operator)
            if any(isinstance(each.node, LeftJoin | SemiJoin) for each in operators):
                yield from self._quiet()
            yield from self._update_stores(operators)

    def _update_stores(self, operators: list[Operator]) -> Program:
        if not any(each.stores for each in operators):
            return
        for operator in operators:
            self.evaluator.route_to_stores(operator, self.evaluator.out.get(operator.number, []))
        yield from self._quiet()
        self.evaluator.apply_arrived()

    def _start(self, operator: Operator, number: int, delta: Delta) -> None:
        evaluator, node = self.evaluator, operator.node
        target = ("out", operator.number)
        if isinstance(node, Join):
            for row, weight in delta:
                evaluator.begin_join(operator, number, row, weight, target, True)
        elif isinstance(node, Union):
            evaluator.out.setdefault(operator.number, []).extend(delta)
        elif isinstance(node, LeftJoin | SemiJoin) and number == 0:
            for row, weight in delta:
                evaluator.left_row(operator, row, weight, target, True)
        elif delta:
            key_of = gather_key(operator, number)
            for row, weight in delta:
                evaluator.send(evaluator.owner(key_of(row)), ("gather", operator.number, number, row, weight))

    def _finish_gathered(self, operator: Operator) -> None:
        evaluator, node = self.evaluator, operator.node
        if isinstance(node, Aggregate | TopK):
            delta = consolidate(evaluator.gathered.pop((operator.number, 0), []))
            if delta:
                made = self.evaluator.graph.update(operator, 0)(delta)
                evaluator.out.setdefault(operator.number, []).extend(made)
        elif isinstance(node, LeftJoin | SemiJoin):
            evaluator.right_delta(operator, evaluator.gathered.pop((operator.number, 1), []))
