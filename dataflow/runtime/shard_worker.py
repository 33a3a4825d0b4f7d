"""One worker of several: epochs as a program that all shards run in step.

`handle(message) -> effects`. An epoch runs in rounds: each shard sends every other one a
bundle, works on those it got, and goes on. Bundles say whether anyone sent anything, so all
shards agree without further ado when a phase is over and which comes next:

    the changes of all tables leave for where they are wanted
                → table by table, the rounds of its step
                → transitions → upqueries → evictions → EpochApplied

The commit of an epoch (`dataflow.commit.epochs`) comes before `BeginEpoch`; what is applied here can
always be had again from the base tables. So the loss of a shard needs no repair: `Reset` has
all shards begin anew without state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from dataflow.plan.step_plan import StepPlan
from dataflow.runtime.asked_keys import ROWS_ASKED_MAX, AskedKeys
from dataflow.runtime.engine import Engine
from dataflow.runtime.kept_views import IntactKeys
from dataflow.runtime.loading import Budget, OverBudget, take_full
from dataflow.runtime.operator import Operator
from dataflow.runtime.shard_messages import (
    BeginEpoch,
    Bundle,
    Effect,
    EndView,
    EpochApplied,
    Eviction,
    EvictKeys,
    LimitMemory,
    MemoryLimited,
    Outgoing,
    Reset,
    StepWanted,
    TakeViews,
    ToWorker,
    Transition,
    Upquery,
    ViewName,
    coming,
)
from dataflow.runtime.shard_programs import Programs
from dataflow.runtime.shard_registry import ShardRegistry
from dataflow.runtime.table_step import TIMED_EVERY
from dataflow.runtime.upquery import BaseSource
from dataflow.state.delta import ordered
from dataflow.state.eviction import Evictor, Pattern

ROWS_PER_EPOCH_MAX = 200_000
"""What needs more rows of a shard's tables than this at once holds everyone up: a view that does cannot be kept."""

Inbox = tuple[bool, int | None, bool, bool]
"""Of all bundles of a round, whose rows are delivered: busy, level, working, over."""
Program = Generator[None, Inbox, None]


class ShardWorker:
    def __init__(
        self, shard: int, shard_count: int, source: BaseSource, fill: int = 0, spend: Callable[[int], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        """`fill`: the number of the fill that it does, see `Bundle`. `spend` is told what is read, else that is limited. For `clock` see `Graph`."""
        self.shard, self.shard_count, self.source, self._clock = shard, shard_count, source, clock
        self.fill, self._spend = fill, spend
        self.generation = 0
        self._reset()

    def _reset(self) -> None:
        self.engine = Engine(self.source, distributed=True, clock=self._clock)
        self.programs = Programs(self.engine.graph, self.shard, self.shard_count)
        self.registry = ShardRegistry(self.engine)
        self.views = self.registry.views
        self.programs.passed_on = (Exception,) if self.fill else ()  # what fails in a fill ends the fill
        self.epoch = 0
        self._leaving: list[Eviction] = []
        self._step: StepPlan | None = None
        self._program: Program | None = None
        self._round = 0
        self._tables: tuple[int, ...] = ()
        self._changed_tables: set[int] = set()
        self.asked = AskedKeys(self.views)
        self._asks: tuple[ViewName, ...] = ()
        self._askers: list[int] = []
        self._asked_views: set[ViewName] = set()
        self._added_views: tuple[ViewName, ...] = ()
        self._is_evicting = False
        self._is_asking = False  # whether what is computed now is for upqueries alone
        self._is_over = False
        self._waiting: list[BeginEpoch] = []
        self._evictions: list[EvictKeys] = []
        self._limit_bytes: int | None = None
        self._bundles: dict[tuple[int, int], dict[int, Bundle]] = {}
        self._effects: list[Effect] = []

    def owner(self, key: object) -> int:
        """The shard on which an index key lives."""
        return self.programs.shards.owner(key)

    @property
    def is_idle(self) -> bool:
        return self._program is None and not self._waiting

    @property
    def is_culprit_known(self) -> bool:
        return self.programs.culprit is not None

    @property
    def blamed(self) -> tuple[ViewName, ...]:
        """After something was raised: the views that the code which raised it belongs to, or those that something is computed for besides changes."""
        culprit = self.programs.culprit
        if culprit is None:
            return (*self._asked_views, *self._added_views)
        return self.registry.made_from(culprit)

    @property
    def wants_epoch(self) -> bool:
        """Whether something here waits for an epoch to begin."""
        return bool(self.asked.waiting or self._evictions) or self._limit_bytes is not None

    # -- the outside

    def handle(self, message: ToWorker) -> list[Effect]:
        self._effects = []
        match message:
            case BeginEpoch():
                self._waiting.append(message)
            case Upquery():
                self.asked.waiting.append(message)
                if self._program is None and not self._waiting:
                    self._effects.append(StepWanted())
            case EvictKeys():
                self._evictions.append(message)
            case LimitMemory(limit_bytes):
                self._limit_bytes = limit_bytes
            case Bundle(generation=generation):
                if generation >= self.generation:
                    self._bundles.setdefault((message.epoch, message.round), {})[message.sender] = message
            case Reset(generation, is_kept):
                self._reset_to(generation, is_kept)
        self._advance()
        return self._effects

    def _reset_to(self, generation: int, is_kept: bool) -> None:
        early = {
            name: kept
            for name, given in self._bundles.items()
            if (kept := {sender: each for sender, each in given.items() if each.generation >= generation})
        }
        refused = self.asked.refusals()
        if not is_kept:
            self.engine.close()
        self._reset()
        self.generation, self._bundles = generation, early
        self._effects.extend(refused)

    def _advance(self) -> None:
        while True:
            if self._program is None:
                if not self._waiting:
                    return
                self._begin(self._waiting.pop(0))
            elif (inbox := self._arrived()) is not None:
                self._run(inbox)
            else:
                return

    def _begin(self, message: BeginEpoch) -> None:
        self.epoch, self._round = message.epoch, 0
        self._tables = tuple(sorted([table for table, delta in message.changes.items() if delta]))
        self._asks = self.asked.begin() if self.asked.waiting else ()
        if message.transitions:
            self._added_views = tuple([start.view for each in message.transitions for start in coming(each)])
        self.engine.graph.spend = self._spend or Budget(ROWS_PER_EPOCH_MAX)
        self.engine.graph.is_timed = self.epoch % TIMED_EVERY == 0
        self.programs.forget_culprit()
        self._program = self._epoch(message)
        next(self._program)
        self._send_bundles()

    def _run(self, inbox: Inbox) -> None:
        assert self._program is not None
        self._round += 1
        try:
            self._program.send(inbox)
        except StopIteration:
            self._program = None
            return
        self._send_bundles()

    def _send_bundles(self) -> None:
        """Do all that can be done here, and give the others what is theirs."""
        programs = self.programs
        self._run_fills()
        self._end_views()
        working = self._step is None or self._step.is_busy
        leaving, busy = programs.send_off()
        evictions, self._leaving = tuple(self._leaving), []
        level = programs.pending_level
        first = self._round == 0
        evicts = first and (bool(self._evictions) or self._limit_bytes is not None)
        for shard in range(self.shard_count):
            is_other = shard != self.shard
            bundle = Bundle(
                self.generation, self.epoch, self._round, self.shard, tuple(leaving.get(shard, ())),
                evictions if is_other else (), busy or bool(evictions), level, working,
                self._tables if first else (), self._asks if first else (), evicts, self.fill, self._is_over, tuple(programs.failed),
            )  # fmt: skip
            if is_other:
                self._effects.append(Outgoing(shard, bundle))
            else:
                self._bundles.setdefault((self.epoch, self._round), {})[shard] = bundle

    def _arrived(self) -> Inbox | None:
        """What the round's bundles say together, once all are here; their rows are delivered."""
        bundles = self._bundles.get((self.epoch, self._round))
        if bundles is None or len(bundles) < self.shard_count:
            return None
        in_order = [bundles[sender] for sender in range(self.shard_count)]
        if {each.generation for each in in_order} != {self.generation}:
            return None
        del self._bundles[self.epoch, self._round]
        if self._round == 0:
            self._changed_tables = {table for each in in_order for table in each.tables}
            self._askers = [each.sender for each in in_order if each.asks]
            self._asked_views = {view for sender in self._askers for view in bundles[sender].asks}
            self._is_evicting = True in [each.evicts for each in in_order]
        if failed := {number for each in in_order for number in each.failed} - self.programs.failed:
            self.programs.end(failed)
            self._end_views()
        busy = working = over = False
        level: int | None = None
        for each in in_order:
            for name, rows, _ in each.rows:
                self.programs.deliver(name, rows)
            for number, pattern in each.evictions:
                self._evictor().evict_matching(self.programs.operator(number), dict(pattern))
            busy, working, over = busy or each.busy, working or each.working, over or each.over
            if each.level is not None:
                level = each.level if level is None else min(level, each.level)
        return busy, level, working, over

    # -- the program of an epoch

    def _run_fills(self) -> None:
        try:
            self.programs.run_fills()
        except OverBudget:
            if not self._is_asking:
                raise
            self._is_over = True
            self.programs.abandon_fills()

    def _quiet(self) -> Program:
        """Exchange rows until there are none, anywhere, and no fill is pending."""
        while True:
            busy, level, _, over = yield
            if over:
                self._is_over = True
                self.programs.abandon_fills()
                return
            if not busy:
                self._run_fills()
                if level is None:
                    self.programs.end_fills()
                    return
                self.programs.settle(level)

    def _run_step(self, step: StepPlan) -> Program:
        """The rounds of a step whose changes have been brought where they are wanted."""
        self._step = step
        for number in range(1, len(step.rounds)):
            step.run(number)
            working = True
            while step.is_exchanged[number]:
                busy, level, working, _ = yield
                if busy:
                    continue
                self.programs.run_fills()
                if level is None:
                    self.programs.end_fills()
                    break
                self.programs.settle(level)
                step.run(number, is_again=True)  # what had met holes goes on
            if not working:
                break
        self._step = None

    def _epoch(self, message: BeginEpoch) -> Program:
        graph, programs = self.engine.graph, self.programs
        graph.pending = {table: ordered(delta) for table, delta in message.changes.items() if delta}
        for table, delta in graph.pending.items():
            step = programs.step(table)
            if step is not None:
                programs.running.append(step)
                step.enter(delta)
        yield
        for table in sorted(self._changed_tables):
            graph.pending.pop(table, None)
            step = programs.step(table)
            if step is not None:
                if step not in programs.running:
                    programs.running.append(step)
                yield from self._run_step(step)
                programs.running.remove(step)
            programs.applied.clear()
            if graph.recorded:
                graph.end_step(self.epoch)
        for transition in message.transitions:
            yield from self._transition(transition)
        if self._asked_views:
            yield from self._fill_asked()
        self._end_views()
        answers = self.asked.answers(self.epoch)
        if graph.recorded:
            graph.end_step(self.epoch)
        if self._is_evicting:
            self._make_room()
            yield from self._quiet()
        self.engine.epoch = self.epoch
        touched = []
        for name, view in self.views.items():
            arrangement = view.arrangement
            if arrangement.touched or arrangement.amended:
                touched.append((name, frozenset(arrangement.touched).union(arrangement.amended)))
        for view in self.views.values():
            view.arrangement.touched.clear()
            view.arrangement.amended.clear()
        self._asked_views.clear()
        self._added_views = ()
        self._is_over = False
        self._effects += (EpochApplied(self.epoch, tuple(touched)), *answers)
        if self.asked.waiting:
            self._effects.append(StepWanted())

    def _transition(self, transition: Transition) -> Program:
        graph, programs = self.engine.graph, self.programs
        programs.forget_culprit()
        prepared, lost = (transition.prepared, transition.lost) if isinstance(transition, TakeViews) else (None, frozenset())
        for start in coming(transition):
            self.registry.add(start)
        if isinstance(transition, EndView):
            self.registry.remove(transition.view)
            self.asked.forget(transition.view)
        programs.refresh()
        if prepared is not None and not lost:
            take_full(graph, prepared.graph)
        graph.unloaded = sorted(
            [pair for pair in graph.unloaded if any(pair[1] is each for each in pair[0].arrangements())],
            key=lambda pair: (pair[0].level, pair[1] is not pair[0].state, pair[0].number, pair[1].columns),
        )
        while graph.unloaded:
            operator, arrangement = graph.unloaded[0]
            programs.begin_load(operator, arrangement)
            yield from self._quiet()
            programs.end_load(operator)
            del graph.unloaded[0]
        if prepared is not None:
            self.engine.take_over(prepared, IntactKeys(prepared.graph, lost, self.owner).has)
            self.asked.taken_over()

    def _end_views(self) -> None:
        """Views made from operators that have failed are not kept any more; who is told so has them removed."""
        if self.programs.dead:
            self._effects += self.registry.end_failed(self.programs)

    # -- reads and evictions

    def _fill_asked(self) -> Program:
        self._is_asking, self.programs.passed_on = True, (*self.programs.passed_on, OverBudget)
        self.engine.graph.spend = self._spend or Budget(ROWS_ASKED_MAX)
        for view, key in self.asked.chosen(min(self._askers) == self.shard):
            assert self.owner(key) == self.shard, "the key lives on another shard"
            self.programs.want(view.operator, view.arrangement, key)
            view.arrangement.touched.add(key)
        yield from self._quiet()
        self._is_asking, self.programs.passed_on = False, self.programs.passed_on[:-1]
        self._effects += self.asked.filled(self._is_over)

    def _evictor(self) -> Evictor:
        return Evictor(self.engine.graph, self._announce)

    def _announce(self, operator: Operator, pattern: Pattern) -> None:
        self._leaving.append((operator.number, tuple(pattern.items())))

    def _make_room(self) -> None:
        """Evict what was asked for, and cold keys if memory is short."""
        evictor = self._evictor()
        evictions, self._evictions = self._evictions, []
        for eviction in evictions:
            view = self.views.get(eviction.view)
            if view is not None and not view.is_full:
                for key in eviction.keys:
                    evictor.evict(view.operator, view.arrangement, key)
        limit, self._limit_bytes = self._limit_bytes, None
        if limit is not None:
            self._effects.append(MemoryLimited(self.engine.enforce(limit, evictor)))
