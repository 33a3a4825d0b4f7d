"""One shard's part in the work of all: steps, fills and loads, each a set of legs.

A lookup that meets a hole parks its prefix. The keys wanted are filled together: they are seeded into
the fill of their arrangement, whose legs run on all shards until no rows are under way anywhere.
Then the pending fills of the lowest level have all their rows, because whatever they could wait for is of
a lower level. They are settled, what parked on them goes on, and so forth until nothing is left. Levels
are two for each operator: its state, and the arrangements of its rows.

An operator whose code raises something has *failed*: from then on, nothing is computed here for it and for what is made from it, which is
*dead*. All shards hear of it in this shard's next bundle, before they show anything that these rows could be missing from. Nothing
but dead operators has seen a failed one in the middle of a change.

Invariant: between two exchanges all shards are at the same point of the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import Any

from dataflow.code.group_code import fresh_state, group_loader
from dataflow.code.topk_code import topk_loader
from dataflow.expressions.source import Key, key_function
from dataflow.plan.exchange import Boxes, Leg, Prefix, Shards, changes_of
from dataflow.plan.fill_plan import FillPlan, LoadPlan, key_columns, surroundings
from dataflow.plan.node import Aggregate, Columns
from dataflow.plan.step_plan import Applied, StepPlan, delta_of
from dataflow.runtime.graph import Graph
from dataflow.runtime.loading import Budget, OverBudget
from dataflow.runtime.operator import Operator, below
from dataflow.runtime.shard_messages import Rows
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Bag, Stream

STATE = "state"
"""Stands for the columns of an operator's own state in the name of its fills."""


class KeyFill:
    """A key that is being computed, and what waits for it."""

    __slots__ = ("parked", "rows")

    def __init__(self) -> None:
        self.rows: Bag = {}
        self.parked: list[tuple[Leg, Prefix]] = []


class KeyFills:
    """The keys of one arrangement that are being computed on this shard."""

    def __init__(self, operator: Operator, arrangement: Arrangement) -> None:
        self.operator, self.arrangement = operator, arrangement
        self.level = 2 * operator.level + (arrangement is not operator.state)
        self.by_key: dict[Key, KeyFill] = {}
        source = operator.inputs[0] if arrangement is operator.state else operator
        self._key_of = key_function(key_columns(operator, arrangement), source.types)
        self._load: Any = None
        self._fresh: Any = None
        if arrangement is operator.state:
            self._load = group_loader(operator) if isinstance(operator.node, Aggregate) else topk_loader(operator)
            self._fresh = fresh_state(operator) if arrangement.kind is ArrangementKind.STATE else None

    def collect(self, rows: list[Prefix]) -> None:
        key_of, by_key = self._key_of, self.by_key
        for each in rows:
            row = each[:-1]
            bag = by_key[key_of(row)].rows
            bag[row] = bag.get(row, 0) + each[-1]

    def value(self, key: Key, rows: Bag) -> Any:
        """What the arrangement holds for the key."""
        if self._load is None:
            return self.arrangement.store(rows)
        states = self._load(rows)
        return states if self._fresh is None else states.get(key) or self._fresh()


class Loading:
    """The rows of a full arrangement on this shard, as they come. Without a key they are all on one shard, which `is_owner`."""

    def __init__(self, operator: Operator, arrangement: Arrangement, is_owner: bool) -> None:
        self._arrangement = arrangement
        self._is_here = bool(arrangement.columns) or is_owner
        self._rows: Bag = {}
        """Of a top-k, which wants them together."""
        self._load: Any = None
        if arrangement is operator.state:
            self._load = group_loader(operator) if isinstance(operator.node, Aggregate) else topk_loader(operator)

    def take(self, rows: list[Prefix]) -> None:
        changes = changes_of(rows)
        if self._load is None:
            self._arrangement.load(changes)
        elif self._arrangement.kind is ArrangementKind.STATE:
            self._load(Stream(changes), self._arrangement.index, False)
        else:
            for row, weight in changes:
                self._rows[row] = self._rows.get(row, 0) + weight

    def end(self) -> None:
        if self._load is None:
            self._arrangement.end_load()
        elif not self._is_here:
            assert not self._arrangement.index and not self._rows
        elif self._arrangement.kind is ArrangementKind.STATE:
            self._load({}, self._arrangement.index)
        else:
            self._arrangement.index[()] = self._load(self._rows)


class Programs:
    def __init__(self, graph: Graph, shard: int, shard_count: int) -> None:
        self.graph, self.shard = graph, shard
        self.shards = Shards(shard, shard_count, self._park)
        self.fills: dict[str, KeyFills] = {}
        """Those that have keys under way, by the name of their plan."""
        self.running: list[StepPlan] = []
        """The steps of the epoch whose rows may be under way."""
        self.applied: Applied = {}
        self._boxes: dict[str, Boxes] = {}
        self._operators: dict[int, Operator] = {}
        self._steps: dict[int, StepPlan] = {}
        self._fillers: dict[str, tuple[FillPlan, KeyFills]] = {}
        self._active: dict[str, FillPlan | LoadPlan] = {}
        self._wanted: dict[str, list[Key]] = {}
        self._loading: Loading | None = None
        self.failed: set[int] = set()
        self.dead: set[int] = set()
        self.errors: list[tuple[Operator, Exception]] = []
        """What has been raised here and was not told to anybody yet."""
        self.passed_on: tuple[type[Exception], ...] = ()
        """What is no fault of an operator."""
        self._at = [-1]
        """The operator whose code runs, or was the last to; of a fill or load, the one it is for."""

    @property
    def culprit(self) -> Operator | None:
        """The operator whose code is the reason if something was raised."""
        return self._operators.get(self._at[0])

    def forget_culprit(self) -> None:
        self._at[0] = -1

    def fail(self, error: Exception) -> None:
        """The operator whose code was running has raised this."""
        culprit = self.culprit
        if culprit is None or isinstance(error, self.passed_on):
            raise error
        self.errors.append((culprit, error))
        self.end({culprit.number})
        if isinstance(error, OverBudget) and isinstance(self.graph.spend, Budget):
            self.graph.spend.renew()

    def end(self, failed: Set[int]) -> None:
        """These operators have failed, here or on another shard."""
        self.failed |= failed & self._operators.keys()
        self._find_dead()
        for name in [name for name, fills in self.fills.items() if fills.operator.number in self.dead]:
            self.fills.pop(name).by_key = {}
        self._wanted = {name: keys for name, keys in self._wanted.items() if self._fillers[name][1].operator.number not in self.dead}
        self._active = {name: plan for name, plan in self._active.items() if plan.operator.number not in self.dead}

    def _find_dead(self) -> None:
        self.failed &= self._operators.keys()
        self.dead.clear()
        if self.failed:
            self.dead.update([number for number, each in self._operators.items() if not self.failed.isdisjoint(below(each))])

    def refresh(self) -> None:
        """The graph has changed."""
        operators = self._operators = {operator.number: operator for operator in self.graph.operators.values()}
        self._find_dead()
        self._steps.clear()
        self._fillers = {
            name: (plan, fills)
            for name, (plan, fills) in self._fillers.items()
            if operators.get(fills.operator.number) is fills.operator and plan.surroundings == surroundings(fills.operator)
        }
        self._boxes = {name: boxes for name, boxes in self._boxes.items() if operator_number(name) in operators}
        for operator in self._operators.values():
            for arrangement in operator.arrangements():
                arrangement.delta_of = lambda arrangement=arrangement: delta_of(self.applied, arrangement)

    def operator(self, number: int) -> Operator:
        return self._operators[number]

    def _boxes_of(self, name: str) -> Boxes:
        return self._boxes.setdefault(name, [[] for _ in range(self.shards.count)])

    # -- plans

    def step(self, table: int) -> StepPlan | None:
        """The plan for changes of a table, None if nobody looks at it."""
        found = self._steps.get(table)
        if found is None and table in self.graph.bases:
            found = self._steps[table] = StepPlan(self.shards, self.graph, table, self._boxes_of, self.applied, self._at, self.dead, self.fail)
        return found

    def _filler(self, name: str) -> tuple[FillPlan, KeyFills]:
        found = self._fillers.get(name)
        if found is None:
            number, columns = name[1:].split("_", 1)
            operator = self._operators[int(number)]
            arrangement = operator.state if columns == STATE else operator.stores[_columns(columns)]
            assert arrangement is not None
            fills = KeyFills(operator, arrangement)
            plan = FillPlan(self.shards, self.graph, operator, arrangement, name, self._boxes_of, fills.collect)
            found = self._fillers[name] = (plan, fills)
        return found

    def begin_load(self, operator: Operator, arrangement: Arrangement) -> None:
        """Send all rows that an empty full arrangement is made from on their way."""
        name = f"load{operator.number}"
        self._loading = Loading(operator, arrangement, self.shards.owner(()) == self.shard)
        plan = LoadPlan(self.shards, self.graph, operator, arrangement, name, self._boxes_of, self._loading.take)
        if operator.number not in self.dead:
            self._active[name] = plan
            self._run_for(plan, plan.start)

    def end_load(self, operator: Operator) -> None:
        """All have come that are this shard's."""
        self._at[0] = operator.number
        loading, self._loading = self._loading, None
        assert loading is not None
        try:
            if operator.number not in self.dead:
                loading.end()
        except Exception as error:
            self.fail(error)
        self._active.pop(f"load{operator.number}", None)
        for name in [name for name in self._boxes if name.startswith(f"load{operator.number}.")]:
            del self._boxes[name]

    # -- holes

    def _park(self, operator: Operator, arrangement: Arrangement, leg: Leg, key: Key, prefix: Prefix) -> None:
        self.want(operator, arrangement, key).parked.append((leg, prefix))

    def want(self, operator: Operator, arrangement: Arrangement, key: Key) -> KeyFill:
        """The fill of a hole on this shard, begun if it is not under way."""
        columns = STATE if arrangement is operator.state else "_".join(map(str, arrangement.columns))
        name = f"f{operator.number}_{columns}"
        fills = self.fills.get(name)
        if fills is None:
            fills = self.fills[name] = self._filler(name)[1]
        fill = fills.by_key.get(key)
        if fill is None:
            fill = fills.by_key[key] = KeyFill()
            self._wanted.setdefault(name, []).append(key)
        return fill

    @property
    def pending_level(self) -> int | None:
        return min([fills.level for fills in self.fills.values()]) if self.fills else None

    def settle(self, level: int) -> None:
        """The pending fills of this level have all their rows."""
        for name in [name for name, fills in self.fills.items() if fills.level == level]:
            fills = self.fills.pop(name)
            by_key, fills.by_key = fills.by_key, {}
            self._at[0] = fills.operator.number
            try:
                for key, fill in by_key.items():
                    fills.arrangement.adopt(key, fills.value(key, fill.rows))
                    for leg, prefix in fill.parked:
                        leg.boxes[self.shard].append(prefix)
            except Exception as error:
                self.fail(error)

    # -- running

    def run_fills(self) -> None:
        """Do all that can be done here of fills, and some of loads."""
        if not self._active and not self._wanted:
            return
        for plan in list(self._active.values()):
            if isinstance(plan, LoadPlan):
                self._run_for(plan, plan.run_some)
        while True:
            wanted, self._wanted = self._wanted, {}
            for name, keys in wanted.items():
                filler = self._active[name] = self._filler(name)[0]
                self._run_for(filler, partial(filler.seed, keys))
            is_done = not wanted
            for plan in list(self._active.values()):
                for leg in plan.legs:
                    rows = leg.take(self.shard)
                    if rows:
                        self._run_for(plan, partial(leg.run, rows))
                        is_done = False
            if is_done:
                return

    def _run_for(self, plan: FillPlan | LoadPlan, work: Callable[[], object]) -> None:
        if plan.operator.number not in self.dead:
            self._at[0] = plan.operator.number
            try:
                work()
            except Exception as error:
                self.fail(error)

    def end_fills(self) -> None:
        """Nothing of fills is under way anywhere."""
        assert not self.fills
        self._active = {name: plan for name, plan in self._active.items() if isinstance(plan, LoadPlan)}

    def abandon_fills(self) -> None:
        """Let all fills go, which nobody but readers waits for; every shard does, at the same point."""
        for fills in self.fills.values():
            fills.by_key = {}
        self.fills.clear()
        self._wanted.clear()
        self._active.clear()
        for name, boxes in self._boxes.items():
            if name[0] == "f":
                boxes[:] = [[] for _ in boxes]

    def deliver(self, name: str, rows: list[Prefix]) -> None:
        """Rows for a leg from another shard."""
        if self.dead and operator_number(name) in self.dead:
            return
        head = name.split(".", 1)[0]
        if name[0] == "f":
            self._active[head] = self._filler(head)[0]
        elif name[0].isdigit():
            self.step(int(head))
        boxes = self._boxes[name]
        if boxes[self.shard]:
            boxes[self.shard].extend(rows)
        else:
            boxes[self.shard] = rows

    def send_off(self) -> tuple[dict[int, list[Rows]], bool]:
        """All that is for other shards, and whether it may cause more to be sent for fills."""
        leaving: dict[int, list[Rows]] = {}
        others = [shard for shard in range(self.shards.count) if shard != self.shard]
        is_busy = False
        for step in self.running:
            for leg in step.legs.values():
                self._empty(leg, others, leaving)
        for plan in self._active.values():
            is_busy |= isinstance(plan, LoadPlan) and plan.has_more
            for leg in plan.legs:
                if self._empty(leg, others, leaving) and leg is not plan.collecting:
                    is_busy = True
        return leaving, is_busy

    def _empty(self, leg: Leg, others: list[int], leaving: dict[int, list[Rows]]) -> bool:
        is_any = False
        for shard in others:
            rows = leg.boxes[shard]
            if rows:
                leg.boxes[shard] = []
                leaving.setdefault(shard, []).append((leg.name, rows, leg.is_plain))
                is_any = True
        return is_any


def operator_number(name: str) -> int:
    """The operator that a leg belongs to."""
    head, rest = name.split(".", 1)
    return int(rest.split(".", 1)[0] if head.isdigit() else head.lstrip("fload").split("_", 1)[0])


def _columns(text: str) -> Columns:
    return tuple(map(int, text.split("_"))) if text else ()
