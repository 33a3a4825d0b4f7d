"""Whole clusters of `ShardEpochs` and their coordinator under a seeded scheduler.

Messages between two processes keep their order, everything else is shuffled; disks finish
late; shards crash, lose what they had not written, and come back. Each transaction appends
its name to the value of every key it touches, expecting the version it read; some come in parts, as
large ones do. So at the end the values tell the history: an acknowledged transaction stands exactly once under each of
its keys, one reported as not committed nowhere, and none under only some of its keys.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from dataflow.commit.alone import Alone
from dataflow.commit.coordinator import Coordinator
from dataflow.commit.epoch_effects import (
    DiscardDecisions,
    DiscardParts,
    DiscardPrepared,
    OpenLater,
    PersistEpoch,
    PersistPart,
    PersistPrepared,
    PreparedEpoch,
    Reply,
    ReportToCoordinator,
)
from dataflow.commit.epoch_messages import (
    ABSENT,
    ANY,
    NEW,
    Committed,
    Inquire,
    Outcome,
    Puts,
    Stage,
    StagePart,
    Stored,
    TransactionId,
    Withdrawn,
    Write,
)
from dataflow.commit.epochs import ShardEpochs
from dataflow.commit.large_writes import LargeWrites
from dataflow.commit.statement_stage import StatementStage
from dataflow.commit.writer_pace import WriterPace


class Disk:
    """What survives a crash. `flushed` is what survives a loss of power too."""

    def __init__(self) -> None:
        self.values: dict[bytes, Stored] = {}
        self.transactions: dict[TransactionId, int] = {}
        self.results: dict[TransactionId, tuple[int, ...]] = {}
        self.prepared: PreparedEpoch | None = None
        self.decisions: dict[int, tuple[TransactionId, ...]] = {}
        self.epoch = 0
        self.parts: dict[TransactionId, list[StagePart]] = {}

    def open(self) -> None:
        """After a crash: parts whose transaction was not prepared are of no use."""
        large = None if self.prepared is None else self.prepared.large
        self.parts = {transaction: parts for transaction, parts in self.parts.items() if transaction == large}

    def parts_of(self, transaction: TransactionId) -> LargeWrites:
        writes = LargeWrites()
        for part in self.parts[transaction]:
            writes.add(part.pairs())
        return writes

    def add_part(self, part: StagePart) -> None:
        parts = self.parts.setdefault(part.transaction, [])
        assert part.number == len(parts)
        parts.append(part)

    def version_of(self, key: bytes) -> int:
        return self.values[key][0] if key in self.values else ABSENT

    def are_absent(self, keys: Sequence[bytes]) -> bool:
        return self.values.keys().isdisjoint(keys)

    def are_unchanged(self, start: bytes, stop: bytes, epoch: int) -> bool:
        return all(version <= epoch for key, (version, _) in self.values.items() if start <= key < stop)

    def get(self, key: bytes) -> Stored | None:
        return self.values.get(key)

    def results_of_transaction(self, transaction: TransactionId) -> tuple[int, ...]:
        return self.results.get(transaction, ())

    def epoch_of_transaction(self, transaction: TransactionId) -> int | None:
        return self.transactions.get(transaction)

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def apply(self, effect: PersistEpoch) -> None:
        assert effect.absent <= effect.writes.keys() and effect.absent.isdisjoint(self.values)
        for puts in effect.new:
            assert not {*self.values, *effect.writes} & set(puts.keys)
            self.values |= {key: (effect.epoch, value) for key, value in zip(puts.keys, puts.values, strict=True)}
        for key, value in effect.writes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = (effect.epoch, value)
        if effect.large is not None:
            transaction, large = effect.large
            assert large.values == self.parts_of(transaction).values and transaction in effect.transactions
            assert sorted(large.values) == list(large.keys_between(None, None))
            del self.parts[transaction]
            for key, value in large.values.items():
                assert value is not None
                self.values[key] = (effect.epoch, value)
        for transaction in effect.transactions:
            self.transactions[transaction] = effect.epoch
        self.results |= effect.results
        if effect.decision is not None:
            self.decisions[effect.epoch] = effect.decision
        self.prepared = None


def stage_of(
    transaction: TransactionId, participants: tuple[int, ...], writes: list[Write], chance: random.Random, new: tuple[Puts, ...] = ()
) -> Stage:
    """Some of the writes as `Puts`, besides those that are `new`."""
    puts = [*new]
    for expected in (ABSENT, ANY):
        some = [each for each in writes if each[1] == expected and each[2] is not None and chance.random() < 0.5]
        if some:
            writes = [each for each in writes if each not in some]
            puts.append(Puts([key for key, _, _ in some], [value for _, _, value in some], expected))
    return Stage(transaction, 0, participants, writes, [], [(1, 1)], puts=tuple(puts))


def relying(stage: Stage, chance: random.Random) -> Stage:
    """The same, where some keys are expected to be as they were by way of a range."""
    chosen = {key for key, expected, _ in stage.writes if expected >= 0 and chance.random() < 0.3}
    writes = [(key, ANY if key in chosen else expected, value) for key, expected, value in stage.writes]
    return replace(stage, writes=writes, unchanged=tuple((key, key + b"\0", since) for key, since, _ in stage.writes if key in chosen))


def parts_of(stage: Stage, chance: random.Random) -> list[StagePart]:
    """Two parts, with all writes and puts in one of them."""
    writes = ([], stage.writes) if chance.random() < 0.5 else (stage.writes[:1], stage.writes[1:])
    puts = (stage.puts, ()) if chance.random() < 0.5 else ((), stage.puts)
    return [StagePart(stage.transaction, number, writes[number], [], None, puts[number]) for number in (0, 1)]


class Cluster:
    def __init__(self, seed: int, shard_count: int) -> None:
        self.random = random.Random(seed)
        self.shard_count = shard_count
        self.disks = [Disk() for _ in range(shard_count)]
        self.shards: list[ShardEpochs | None] = [None] * shard_count
        self.coordinator: Coordinator | None = None
        self.lives = [0] * shard_count
        self.queues: dict[object, deque[Callable[[], None]]] = {}
        self.waiting: dict[TransactionId, dict[int, Stage]] = {}
        self.answers: dict[TransactionId, dict[int, Outcome]] = {}
        self.results: dict[TransactionId, bool] = {}
        self.statements: set[TransactionId] = set()
        self.sequence = 0
        self.pace = self.random.choice([None, WriterPace()])
        self.large = self.random.choice([0.0, 0.3, 1.0])
        """How many of the stages come in parts."""
        self.unsent: dict[TransactionId, dict[int, deque]] = {}
        self.counts: dict[tuple[TransactionId, int], int] = {}
        for shard in range(shard_count):
            self.start(shard)

    # --- processes and the network between them

    def start(self, shard: int) -> None:
        disk = self.disks[shard]
        disk.open()
        self.lives[shard] += 1
        alone = Alone(disk.next_epoch, lambda epoch: None, self.pace) if self.shard_count == 1 else None
        machine = self.shards[shard] = ShardEpochs(shard, disk, disk.prepared, alone=alone)
        machine.set_tables({1: 1})
        if shard == 0:
            self.coordinator = Coordinator(self.shard_count, disk.next_epoch, dict(disk.decisions))
            for other in range(self.shard_count):
                self.connect(other)
        elif self.coordinator is not None:
            self.connect(shard)

    def connect(self, shard: int) -> None:
        machine = self.shards[shard]
        if machine is not None:
            self.carry_out(shard, machine.coordinator_found())

    def crash(self, shard: int) -> None:
        self.shards[shard] = None
        for queue in [q for q in self.queues if isinstance(q, tuple) and shard in q[1:]]:
            del self.queues[queue]
        if shard == 0:
            self.coordinator = None
            for other, machine in enumerate(self.shards):
                if machine is not None and other:
                    machine.coordinator_lost()
        elif self.coordinator is not None:
            coordinator = self.coordinator
            self.send_all(coordinator.lost(shard))
        for transaction, stages in list(self.waiting.items()):
            if shard in stages:
                self.client_lost_shard(transaction, shard)
        self.post(("restart", shard), lambda: self.start(shard))

    def post(self, queue: object, action: Callable[[], None]) -> None:
        self.queues.setdefault(queue, deque()).append(action)

    def step(self) -> bool:
        ready = [queue for queue, actions in self.queues.items() if actions]
        if not ready:
            return False
        actions = self.queues[self.random.choice(ready)]
        actions.popleft()()
        return True

    def send_all(self, sends: list) -> None:
        for send in sends:
            def deliver(send: object = send) -> None:
                machine = self.shards[send.shard]
                if machine is not None:
                    self.carry_out(send.shard, machine.handle(send.message))
            self.post(("down", 0, send.shard), deliver)

    def carry_out(self, shard: int, effects: list) -> None:
        life = self.lives[shard]
        for effect in effects:
            match effect:
                case ReportToCoordinator(message):
                    def deliver(message: object = message) -> None:
                        if self.coordinator is not None:
                            self.send_all(self.coordinator.handle(message))
                    self.post(("up", shard, 0), deliver)
                case Reply(transaction, outcome):
                    self.answer(transaction, shard, outcome)
                case OpenLater():
                    self.post(("timer", shard), lambda: self.due(shard, life))
                case PersistPrepared(record):
                    self.post(("disk", shard), lambda r=record: self.persist(shard, life, lambda d: setattr(d, "prepared", r)))
                case PersistEpoch():
                    self.post(("disk", shard), lambda e=effect: self.persist(shard, life, lambda d: d.apply(e)))
                case PersistPart(part):
                    self.post(("disk", shard), lambda p=part: self.persist_part(shard, life, p))
                case DiscardParts(transaction):
                    self.post(("disk", shard), lambda t=transaction: self.discard_parts(shard, life, t))
                case DiscardPrepared(epoch):
                    assert self.disks[shard].prepared is not None and self.disks[shard].prepared.epoch == epoch
                    self.disks[shard].prepared = None
                case DiscardDecisions(epochs):
                    for epoch in epochs:
                        del self.disks[shard].decisions[epoch]

    def persist(self, shard: int, life: int, write: Callable[[Disk], None]) -> None:
        machine = self.shards[shard]
        if machine is None or self.lives[shard] != life:
            return
        write(self.disks[shard])
        self.carry_out(shard, machine.persisted())

    def due(self, shard: int, life: int) -> None:
        machine = self.shards[shard]
        if machine is not None and self.lives[shard] == life:
            self.carry_out(shard, machine.due())

    def persist_part(self, shard: int, life: int, part: StagePart) -> None:
        if self.lives[shard] == life and self.shards[shard] is not None:
            self.disks[shard].add_part(part)
            self.part_done(part, shard)

    def discard_parts(self, shard: int, life: int, transaction: TransactionId) -> None:
        if self.lives[shard] == life and self.shards[shard] is not None:
            self.disks[shard].parts.pop(transaction, None)

    # --- clients

    def submit(self) -> None:
        transaction = (b"client", self.sequence)
        self.sequence += 1
        name = b"<%d>" % transaction[1]
        keys = self.random.sample(range(6 * self.shard_count), self.random.choice([1, 1, 1, 2, 3]))
        parts: dict[int, list] = {}
        for key_number in keys:
            shard, key = key_number % self.shard_count, b"k%d" % key_number
            version, value = self.disks[shard].values.get(key, (ABSENT, b""))
            parts.setdefault(shard, []).append((key, version, value + name))
        self.answers[transaction] = {}
        stages = {}
        for shard, writes in parts.items():
            numbers = range(self.random.choice([0, 0, 3]))
            new = (Puts([b"new%d-%d" % (transaction[1], each) for each in numbers], [name] * len(numbers), NEW),) if numbers else ()
            stages[shard] = stage_of(transaction, tuple(sorted(parts)), writes, self.random, new)
        self.waiting[transaction] = stages
        if len(parts) == 1 and self.random.random() < 0.5:
            [(shard, writes)] = parts.items()
            self.submit_statements(transaction, shard, [key for key, _, _ in writes], name)
            return
        self.unsent[transaction] = {
            shard: deque(parts_of(stage, self.random)) for shard, stage in stages.items() if self.random.random() < self.large
        }
        for shard in stages.keys() - self.unsent[transaction].keys():
            stages[shard] = relying(stages[shard], self.random)
        self.send_on(transaction)

    def submit_statements(self, transaction: TransactionId, shard: int, keys: list[bytes], name: bytes) -> None:
        """Have the shard add the name to each key, whatever it has."""
        self.waiting[transaction] = {shard: Stage(transaction, 0, (shard,), [(key, ANY, name) for key in keys], [], [])}
        self.statements.add(transaction)
        disk = self.disks[shard]

        def add(writes: dict[bytes, bytes | None], absent: set[bytes]) -> tuple[list[int], set[bytes]]:
            for key in keys:
                if key not in writes and key not in disk.values:
                    absent.add(key)
                old = writes[key] if key in writes else disk.values.get(key, (0, b""))[1]
                writes[key] = (old or b"") + name
            return [transaction[1]] * len(keys), set(keys)

        stage = StatementStage(shard, transaction, 0, (1, 1), len(keys), add)
        self.deliver(transaction, shard, lambda machine: machine.stage(stage))

    def send_on(self, transaction: TransactionId) -> None:
        """Parts one after the other on each shard, then the stages."""
        unsent = self.unsent[transaction]
        for shard, parts in list(unsent.items()):
            if parts and not isinstance(parts[0], int):
                part, number = parts[0], parts[0].number
                parts.appendleft(number)  # it is on its way
                self.deliver(transaction, shard, lambda machine, part=part: machine.stage_part(part))
        if any(unsent.values()):
            return
        for shard, stage in self.waiting[transaction].items():
            if shard in unsent:
                stage = replace(stage, writes=[], checks=[], puts=(), parts=self.counts[transaction, shard])
            self.deliver(transaction, shard, lambda machine, stage=stage: machine.stage(replace(stage)))

    def part_done(self, part: StagePart, shard: int) -> None:
        if part.transaction not in self.waiting:
            return
        parts = self.unsent[part.transaction][shard]
        assert parts.popleft() == parts.popleft().number == part.number
        self.counts[part.transaction, shard] = part.number + 1
        self.send_on(part.transaction)

    def deliver(self, transaction: TransactionId, shard: int, hand: Callable[[ShardEpochs], list]) -> None:
        def deliver() -> None:
            machine = self.shards[shard]
            if transaction not in self.waiting:
                return
            if machine is None:
                self.client_lost_shard(transaction, shard)
            else:
                self.carry_out(shard, hand(machine))

        self.post(("client", f"t{transaction[1]}", shard), deliver)

    def client_lost_shard(self, transaction: TransactionId, lost: int) -> None:
        """Ask every shard what became of it, those that are down once they are back."""
        for shard in self.waiting[transaction]:
            self.post(("ask", f"t{transaction[1]}"), lambda s=shard: self.ask(transaction, s))

    def ask(self, transaction: TransactionId, shard: int) -> None:
        if transaction not in self.waiting:
            return
        machine = self.shards[shard]
        if machine is None or machine.in_doubt:
            self.post(("ask", f"t{transaction[1]}"), lambda: self.ask(transaction, shard))
        else:
            self.carry_out(shard, machine.inquire(Inquire(transaction)))

    def answer(self, transaction: TransactionId, shard: int, outcome: Outcome) -> None:
        if transaction not in self.waiting:
            return
        answers = self.answers[transaction]
        if not isinstance(outcome, Committed) or shard not in answers:
            answers[shard] = outcome
        if set(answers) == set(self.waiting[transaction]):
            committed = {isinstance(answer, Committed) for answer in answers.values()}
            assert len(committed) == 1, f"{transaction} committed on some shards only: {answers}"
            for answer in answers.values():
                if isinstance(answer, Committed):
                    expected = {transaction[1]} if transaction in self.statements else set()
                    assert set(answer.results) == expected, "results of another, or none"
            self.results[transaction] = committed.pop()
            del self.waiting[transaction]
        elif not isinstance(outcome, Committed):
            # One shard's refusal is final; the others need not wait for an epoch to learn of it.
            for other in set(self.waiting[transaction]) - set(answers):
                self.post(("ask", f"t{transaction[1]}"), lambda s=other: self.ask(transaction, s))

    def settle(self) -> None:
        for _ in range(200_000):
            if not self.step():
                return
        raise AssertionError("the cluster does not come to rest")


def history(cluster: Cluster, transaction: TransactionId) -> int:
    name = b"<%d>" % transaction[1]
    return sum(value.count(name) for disk in cluster.disks for _, value in disk.values.values())


def run(seed: int) -> int:
    """How many transactions committed."""
    chance = random.Random(seed)
    cluster = Cluster(seed, shard_count=chance.randint(1, 5))
    crashes = chance.choice([0.0, 0.002, 0.02])
    touched: dict[TransactionId, int] = {}
    for _ in range(1500):
        roll = chance.random()
        if roll < 0.08 and len(cluster.waiting) < 30:
            cluster.submit()
            latest = (b"client", cluster.sequence - 1)
            stages = cluster.waiting[latest].values()
            touched[latest] = sum(len(stage.writes) + sum(len(each.keys) for each in stage.puts) for stage in stages)
        elif roll < 0.08 + crashes:
            alive = [shard for shard, machine in enumerate(cluster.shards) if machine is not None]
            if alive:
                cluster.crash(chance.choice(alive))
        else:
            cluster.step()
    cluster.settle()
    assert not cluster.waiting, f"never answered: {cluster.waiting}"
    for transaction, committed in cluster.results.items():
        assert history(cluster, transaction) == (touched[transaction] if committed else 0), transaction
    for disk in cluster.disks[1:]:
        assert disk.prepared is None
    assert len(cluster.disks[0].decisions) <= 2 * cluster.shard_count
    return sum(cluster.results.values())


def run_all(seeds: range) -> None:
    committed = 0
    for seed in seeds:
        try:
            committed += run(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert committed > 10 * len(seeds)


@pytest.mark.parametrize("block", range(4))
def test_transactions_are_atomic_and_acknowledged_ones_last(block: int) -> None:
    run_all(range(block * 50, block * 50 + 50))


@pytest.mark.slow
def test_transactions_are_atomic_and_acknowledged_ones_last_for_many_seeds() -> None:
    run_all(range(1000, 3000))


def test_inquiry_of_an_unknown_transaction_withdraws_it_for_good() -> None:
    cluster = Cluster(1, 1)
    machine = cluster.shards[0]
    assert machine is not None
    assert machine.inquire(Inquire((b"client", 7))) == [Reply((b"client", 7), Withdrawn())]
    late = Stage((b"client", 7), 0, (0,), [(b"k", ABSENT, b"v")], [], [(1, 1)])
    assert machine.stage(late) == [Reply((b"client", 7), Withdrawn())]
    cluster.settle()
    assert cluster.disks[0].values == {}
