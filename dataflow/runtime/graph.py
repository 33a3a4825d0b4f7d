"""The running graph: operators, what they hold of each other, and the code of a step.

Operators are shared by placement and arrangements by (operator, columns); both live as long
as someone uses them. A *step* is the change of one base table taken through everything that
depends on it, in topological order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

from dataflow.code.fused_code import can_fuse, fused_update
from dataflow.code.group_code import fresh_state, group_loader, group_update
from dataflow.code.join_code import join_update, reads_before
from dataflow.code.lookup_code import Output
from dataflow.code.match_code import match_update
from dataflow.code.topk_code import topk_loader, topk_update
from dataflow.expressions.expression import columns_of
from dataflow.expressions.source import Function, FunctionSource, Key, key_function
from dataflow.plan.node import Aggregate, Base, Columns, Join, LeftJoin, SemiJoin, TopK, expressions_of
from dataflow.plan.pipeline import lookups_of
from dataflow.plan.placement import NO_KEY, Placement
from dataflow.runtime.operator import FUSED, BagReader, Operator, group_width
from dataflow.runtime.table_step import Call, table_step
from dataflow.runtime.upquery import BaseSource, Upqueries, needed_stores
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Change, Delta
from dataflow.values.types import Row


class Graph:
    def __init__(self, source: BaseSource, distributed: bool = False, clock: Callable[[], float] | None = None) -> None:
        """With a `clock`, operators know how long they take."""
        self.source = source
        self.clock, self.is_timed = clock, False
        self.distributed = distributed
        self.unloaded: list[tuple[Operator, Arrangement]] = []
        """Full arrangements that wait for their rows, see `dataflow.runtime.loading`."""
        self.spend: Callable[[int], None] = _unlimited
        """Told how many rows are read to compute something; may raise to stop it."""
        self.operators: dict[Placement, Operator] = {}
        self.bases: dict[int, Operator] = {}
        self.pending: dict[int, Delta] = {}
        """Changes of this epoch that are in the source but whose step has not begun."""
        self.prefetched: dict[tuple[int, Columns], dict[Key, Iterable[Row]]] = {}
        """Rows of base tables that were read for fills to come, see `dataflow.runtime.prefetch`."""
        self.recorded: dict[int, tuple[Operator, Arrangement]] = {}
        self.failed: dict[Operator, Exception] = {}
        """Operators whose code has raised something: they and all that is made from them have missed changes."""
        self._steps: dict[int, Function] = {}
        self._upqueries = Upqueries(self)
        self._count = 0

    # -- building and taking down

    def build(self, placement: Placement) -> Operator:
        found = self.operators.get(placement)
        if found is not None:
            return found
        inputs = tuple(self.build(each) for each in placement.inputs)
        operator = Operator(self._count, placement, inputs)
        self._count += 1
        self.operators[placement] = operator
        if isinstance(operator.node, Base):
            table = operator.node.table
            self.bases[table] = operator
            operator.is_indexed = lambda columns: self.source.is_indexed(table, columns)
        for number, each in enumerate(inputs):
            each.consumers.append((operator, number))
            if each.inputs:  # a base table's code does not depend on who consumes it
                each.invalidate()
        for number, columns in sorted(lookups_of(operator.node)):
            arrangement = self.acquire(operator, inputs[number], columns)
            old = isinstance(operator.node, Join | LeftJoin | SemiJoin) and any(
                reads_before(operator, changed, number) for changed in range(len(inputs))
            )
            if old:
                operator.recordings.append((inputs[number], arrangement))
                self.start_recording(inputs[number], arrangement)
        if operator.is_stateful:
            self._create_state(operator)
        self._forget_steps(operator)
        return operator

    def acquire(self, user: Operator, owner: Operator, columns: Columns) -> Arrangement:
        """The arrangement of `owner` that answers lookups by `columns`, held by `user`."""
        arrangement = owner.reader(columns) or self.new_store(owner, columns)
        arrangement.users += 1
        user.uses.append((owner, arrangement))
        return arrangement

    def new_store(self, owner: Operator, columns: Columns, full: str = "") -> Arrangement:
        store = owner.new_store(columns, full)
        if self.distributed:
            self._distribute(owner, store)
            return store
        if store.full:
            self.unloaded.append((owner, store))
        else:
            read = self.bag_reader(owner, columns)
            store.compute = lambda key: store.store(read(key))
        self._forget_steps(owner)
        return store

    def undo(self, kept: Set[Placement]) -> None:
        """An extension has failed: take down all operators but those that were there, and what was not loaded."""
        unloaded, self.unloaded = self.unloaded, []
        for placement, operator in reversed(list(self.operators.items())):
            if placement not in kept:
                for arrangement in operator.arrangements():
                    arrangement.release()
                operator.stores.clear()
                operator.state = None
                self.release(operator)
        empty = {id(arrangement) for _, arrangement in unloaded}
        for operator in list(self.operators.values()):
            if any(id(arrangement) in empty for _, arrangement in operator.uses):
                operator.computers.clear()
                operator.uses = [each for each in operator.uses if id(each[1]) not in empty]
        for operator, arrangement in unloaded:
            arrangement.users = 0
            self.release(operator)

    def release(self, operator: Operator) -> None:
        """Take the operator down if nobody uses it any more, and what only it used."""
        for columns in [c for c, each in operator.stores.items() if not each.users and not each.views]:
            self.recorded.pop(id(operator.stores[columns]), None)
            operator.stores.pop(columns).release()
            operator.computers.pop(columns, None)
            operator.invalidate()
            self._forget_steps(operator)
        state_in_use = operator.state is not None and (operator.state.views or operator.state.users)
        if operator.consumers or operator.stores or state_in_use:
            return
        if self.operators.pop(operator.placement, None) is None:
            return
        if isinstance(operator.node, Base):
            del self.bases[operator.node.table]
        if operator.state is not None:
            self.recorded.pop(id(operator.state), None)
            operator.state.release()
        self._forget_steps(operator)
        for number, each in enumerate(operator.inputs):
            each.consumers.remove((operator, number))
            each.invalidate()
        for _, arrangement in operator.uses:
            arrangement.users -= 1
        for owner, arrangement in operator.recordings:
            self.stop_recording(owner, arrangement)
        for owner in {id(each): each for each in (*operator.inputs, *(owner for owner, _ in operator.uses))}.values():
            self.release(owner)

    def close(self) -> None:
        """Let go of everything that is held."""
        for operator in self.operators.values():
            for arrangement in operator.arrangements():
                arrangement.release()

    def start_recording(self, owner: Operator, arrangement: Arrangement) -> None:
        arrangement.recorders += 1
        self.recording_changed(owner, arrangement)

    def stop_recording(self, owner: Operator, arrangement: Arrangement) -> None:
        arrangement.recorders -= 1
        self.recording_changed(owner, arrangement)

    def recording_changed(self, owner: Operator, arrangement: Arrangement) -> None:
        if arrangement.recorders:
            self.recorded[id(arrangement)] = (owner, arrangement)
        else:
            self.recorded.pop(id(arrangement), None)
        owner.invalidate()
        self._forget_steps(owner)

    def _create_state(self, operator: Operator) -> None:
        node = operator.node
        assert isinstance(node, Aggregate | TopK)
        whole = group_width(node)
        key = operator.placement.key
        if isinstance(node, TopK):
            kind, columns = ArrangementKind.WINDOWS, key if key is not None else ()
        else:
            kind = ArrangementKind.STATE if key is None or key == whole else ArrangementKind.PARTS
            columns = whole if kind is ArrangementKind.STATE else key or ()
        reason = "" if key is not None else operator.placement.reason or NO_KEY
        state = Arrangement(columns, kind, key_function(columns, node.types), operator.label, reason)
        operator.state = state
        if self.distributed:
            self._distribute(operator, state)
            return
        if key is None:
            self.unloaded.append((operator, state))
            return
        load = group_loader(operator) if isinstance(node, Aggregate) else topk_loader(operator, is_whole=False)
        inner = node.group if isinstance(node, Aggregate) else tuple(range(len(node.types)))
        below = [inner[c] for c in columns]
        read = self.bag_reader(operator.inputs[0], tuple(sorted(below)))
        order = None if below == sorted(below) else [below.index(c) for c in sorted(below)]
        fresh = fresh_state(operator) if kind is ArrangementKind.STATE else None

        lead = self._upqueries.lead_reader(operator, columns) if isinstance(node, TopK) else None
        operator.is_led = lead is not None

        def compute(given: Key) -> Any:
            if lead is not None and (found := lead(given)) is not None:
                return found
            states = load(read(given if order is None else tuple(given[i] for i in order)))
            if fresh is None:
                return states
            return states.get(given) or fresh()

        state.compute = compute

    def _distribute(self, owner: Operator, arrangement: Arrangement) -> None:
        """Note what has to be loaded, or hold what fills of the arrangement cannot do without."""
        if arrangement.full:
            self.unloaded.append((owner, arrangement))
            return
        for user, source, columns in list(needed_stores(owner, arrangement)):
            self.acquire(user, source, columns)

    def bag_reader(self, operator: Operator, columns: Columns) -> BagReader:
        """A function that gives the operator's rows with a key in `columns`, as of now."""
        return self._upqueries.bag_reader(operator, columns)

    def base_rows(self, node: Base, columns: Columns, keys: Sequence[Key]) -> dict[Key, Iterable[Row]]:
        """The rows of each key of a base table, changes that are pending included."""
        return self._upqueries.base_rows(node, columns, keys)

    def prefetch(self, node: Base, columns: Columns, keys: Sequence[Key]) -> None:
        """Read the rows of these keys of a base table, for fills that begin with them."""
        self.prefetched.setdefault((node.table, columns), {}).update(self.base_rows(node, columns, keys))

    def forget_prefetched(self) -> None:
        for rows in self.prefetched.values():
            rows.clear()

    def stream(self, operator: Operator) -> Iterator[Change]:
        """All rows of the operator, one after the other, as of now."""
        return self._upqueries.stream(operator)

    def is_loaded(self, arrangement: Arrangement) -> bool:
        """Whether it has all rows of its operator."""
        return arrangement.full and not any(each is arrangement for _, each in self.unloaded)

    # -- steps

    def seen_columns(self, table: int) -> Columns | None:
        """All that anybody looks at of a base table's changes; None if that may be whole rows."""
        base = self.bases.get(table)
        if base is None or base.stores or self.recorded:
            return None
        seen: set[int] = set()
        for consumer, _ in base.consumers:
            if not isinstance(consumer.node, Aggregate):
                return None
            seen.update(consumer.node.group, *map(columns_of, expressions_of(consumer.node)))
        return tuple(sorted(seen))

    def step(self, table: int) -> Function:
        """The function that takes a delta of a base table through the graph."""
        found = self._steps.get(table)
        if found is None:
            found = self._steps[table] = self._make_step(table)
        return found

    def invalidate(self, operator: Operator) -> None:
        """The operator's arrangements changed: its code has to be written anew."""
        operator.invalidate()
        self._forget_steps(operator)

    def _forget_steps(self, operator: Operator) -> None:
        for table in operator.bases:
            self._steps.pop(table, None)

    def update(self, operator: Operator, number: int) -> Function:
        found = operator.updates.get(number)
        if found is None:
            found = operator.updates[number] = self._make_update(operator, number)
        return found

    def _make_update(self, operator: Operator, number: int) -> Function:
        if number == FUSED:
            return fused_update(operator)
        match operator.node:
            case Join():
                return join_update(operator, number)
            case LeftJoin() | SemiJoin():
                return match_update(operator, number)
            case Aggregate():
                assert operator.state is not None
                return group_update(operator, operator.state)
            case TopK():
                assert operator.state is not None
                return topk_update(operator, operator.state, _storing(operator), operator.state.full)
            case _:
                return _storing(operator)

    def _make_step(self, table: int) -> Function:
        base = self.bases.get(table)
        if base is None:
            return lambda delta: None
        reached: dict[int, Operator] = {base.number: base}
        waiting = [base]
        while waiting:
            for consumer, _ in waiting.pop().consumers:
                if consumer.number not in reached:
                    reached[consumer.number] = consumer
                    waiting.append(consumer)
        fused = {each.number for each in reached.values() if _is_fused(each, reached)}
        if len(reached) == 3 and fused and not base.stores and not self.recorded:
            [group] = [each for each in reached.values() if each.number in fused]
            [consumer] = [each for each in reached.values() if each is not group and each is not base]
            call: Call = consumer, [(self.update(group, FUSED), base.number, (group, consumer))]
            return table_step(base, None, [call], frozenset(), self.failed, self.clock)
        calls: list[Call] = []
        for operator in sorted(reached.values(), key=lambda each: (each.level, each.number)):
            if operator.number in fused or operator is base:
                continue
            inputs: list[tuple[Function, int, tuple[Operator, ...]]] = []
            for number, each in enumerate(operator.inputs):
                if each.number in fused:
                    inputs.append((self.update(each, FUSED), each.inputs[0].number, (each, operator)))
                elif each.number in reached:
                    inputs.append((self.update(operator, number), each.number, (operator,)))
            calls.append((operator, inputs))
        recorded = frozenset(owner.number for owner, _ in self.recorded.values())
        return table_step(base, self.update(base, 0) if base.stores else None, calls, recorded, self.failed, self.clock)

    def end_step(self, epoch: int) -> None:
        for owner, arrangement in self.recorded.values():
            owner.delta = []
            arrangement.epoch = epoch
            arrangement.end_step()


def _unlimited(rows: int) -> None:
    """Any number of rows may be read."""


def _is_fused(operator: Operator, reached: dict[int, Operator]) -> bool:
    """Whether a step runs the operator and its consumer as one."""
    if not can_fuse(operator):
        return False
    consumer = operator.consumers[0][0]
    return sum(each.number in reached for each in consumer.inputs) == 1


def _storing(operator: Operator) -> Function:
    """A delta of the operator's own rows into its arrangements, and out again as it is."""
    code = FunctionSource(f"store_{operator.number}", "delta")
    output = Output(code, operator)
    if output.stores:
        output.passes_on = False
        top = code.depth
        code.open("for row, w in delta:")
        output.row("row", "w")
        code.close(top)
    code.line("return delta")
    return code.build()
