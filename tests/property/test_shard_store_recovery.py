"""A shard's store against a model in memory, through crashes and restarts at any point."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dataflow.commit.epoch_effects import PersistEpoch, PreparedEpoch
from dataflow.commit.epoch_messages import ANY, StagePart, TransactionId
from dataflow.commit.large_writes import LargeWrites
from persistence import large_transactions
from persistence.layout import KINDS, fence
from persistence.shard_store import ShardStore

ALL_KEYS = [bytes((kind, number)) for kind in b"riu" for number in range(4)]
KEYS = st.sampled_from(ALL_KEYS)
WRITES = st.dictionaries(KEYS, st.none() | st.binary(max_size=5), max_size=5)
CLIENTS = st.sampled_from([b"one", b"two"])


class StoreAgainstModel(RuleBasedStateMachine):
    """Every rule is durable when it returns, so no crash between rules may lose anything.

    Large transactions commit with their epoch, and no step of what is done with them afterwards may show.
    """

    def __init__(self) -> None:
        super().__init__()
        self._moved_keys, large_transactions.MOVED_KEYS = large_transactions.MOVED_KEYS, 2
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-store-"))
        self.store = ShardStore(self.folder)
        self.epoch = 0
        self.rows: dict[bytes, tuple[int, bytes]] = {fence(kind): (0, b"") for kind in KINDS}
        self.states: list[tuple[int, dict[bytes, tuple[int, bytes]]]] = []
        self.prepared: PreparedEpoch | None = None
        self.committed: dict[TransactionId, int] = {}
        self.decisions: dict[int, tuple[TransactionId, ...]] = {}
        self.handed_out: set[int] = set()
        self.sequence = 0

    def stage_large(self, transaction: TransactionId, writes: dict[bytes, bytes | None]) -> tuple[TransactionId, LargeWrites]:
        """Its writes in two parts."""
        pairs, large = list(writes.items()), LargeWrites()
        for number, some in enumerate((pairs[::2], pairs[1::2])):
            self.store.persist_part(StagePart(transaction, number, [(key, ANY, value) for key, value in some], []))
            large.add(some)
        return transaction, large

    @rule()
    def stage_in_vain(self) -> None:
        """It is never committed."""
        transaction, _ = self.stage_large((b"two", 10_000), {b"r\0": b"lost", b"i\1": None})
        if self.epoch % 2:
            self.store.discard_parts(transaction)

    @rule()
    def move(self) -> None:
        before = self.store.is_moving
        assert self.store.move() == self.store.is_moving
        assert before or not self.store.is_moving

    @rule(
        writes=WRITES,
        client=CLIENTS,
        skipped=st.integers(0, 2),
        settles=st.booleans(),
        decides=st.booleans(),
        large=st.none() | WRITES,
    )
    def apply(
        self,
        writes: dict[bytes, bytes | None],
        client: bytes,
        skipped: int,
        settles: bool,
        decides: bool,
        large: dict[bytes, bytes | None] | None,
    ) -> None:
        self.states.append((self.epoch, dict(self.rows)))
        self.epoch += 1 + skipped
        self.sequence += 1
        transaction = (client, self.sequence)
        settled = {client: self.sequence} if settles else {}
        decision = (transaction,) if decides else None
        self.store.persist_epoch(
            PersistEpoch(
                self.epoch,
                writes,
                [transaction],
                settled,
                decision,
                durable=True,
                large=None if large is None else self.stage_large(transaction, large),
            )
        )
        for key, value in (writes | (large or {})).items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = (self.epoch, value)
        if settles:
            self.committed = {t: epoch for t, epoch in self.committed.items() if t[0] != client}
        self.committed[transaction] = self.epoch
        if decision is not None:
            self.decisions[self.epoch] = decision
        self.prepared = None

    @rule(writes=WRITES, client=CLIENTS, large=st.booleans())
    def prepare(self, writes: dict[bytes, bytes | None], client: bytes, large: bool) -> None:
        transaction = (client, self.sequence + 1_000)
        self.prepared = PreparedEpoch(self.epoch + 1, writes, [], [(transaction, writes)], large=transaction if large else None)
        if large:
            self.store.discard_parts(transaction)
            self.stage_large(transaction, writes)
        self.store.persist_prepared(self.prepared)

    @invariant()
    def what_a_prepared_large_transaction_writes_is_there(self) -> None:
        if self.prepared is not None and self.prepared.large is not None:
            assert self.store.parts_of(self.prepared.large).values == self.prepared.writes

    @rule()
    def discard_prepared(self) -> None:
        if self.prepared is not None:
            self.store.discard_prepared(self.prepared.epoch)
            self.prepared = None

    @rule()
    def discard_decisions(self) -> None:
        self.store.discard_decisions(list(self.decisions))
        self.decisions.clear()

    @rule(count=st.integers(0, 20_000), floor=st.integers(0, 30_000))
    def allocate(self, count: int, floor: int) -> None:
        first = self.store.allocate(b"counter", count, floor)
        assert first >= max(floor, 1)
        numbers = {first, first + count - 1} if count else set()
        assert not any(number <= max(self.handed_out, default=0) for number in numbers)
        self.handed_out |= numbers

    @rule(cleanly=st.booleans())
    def restart(self, cleanly: bool) -> None:
        if cleanly:
            self.store.close()
        else:
            self.store.abort()
        self.store = ShardStore(self.folder)
        self.states.clear()

    @invariant()
    def the_store_holds_what_the_model_holds(self) -> None:
        store = self.store
        assert store.epoch == self.epoch
        found = {
            key: (version, value) for chunk in store.view().scan(b"a", b"z") for key, version, value in chunk
        }
        assert found == self.rows
        back = [key for chunk in store.view().scan(b"a", b"z", reverse=True) for key, _, _ in chunk]
        assert back == sorted(found, reverse=True)
        some = [key for chunk in store.view().scan(b"i\1", b"r\2") for key, _, _ in chunk]
        assert some == [key for key in sorted(found) if b"i\1" <= key < b"r\2"]
        assert [value for chunk in store.view().payloads(b"a", b"z") for value in chunk] == [v for _, (_, v) in sorted(found.items())]
        assert {key: store.get(key) for key in ALL_KEYS} == {key: self.rows.get(key) for key in ALL_KEYS}
        assert store.prepared() == self.prepared
        assert store.decisions() == self.decisions
        for sequence in range(1, self.sequence + 1):
            for client in (b"one", b"two"):
                expected = self.committed.get((client, sequence))
                assert store.epoch_of_transaction((client, sequence)) == expected

    @invariant()
    def recent_epochs_read_as_they_were(self) -> None:
        ends = [start for start, _ in self.states[1:]] + [self.epoch]
        for (start, rows), end in list(zip(self.states, ends))[-5:]:
            for epoch in {start, end - 1}:
                view = self.store.view_at(epoch)
                assert view is not None
                assert {key: stored for key in rows if (stored := view.get(key))} == rows

    def teardown(self) -> None:
        large_transactions.MOVED_KEYS = self._moved_keys
        self.store.abort()
        shutil.rmtree(self.folder)


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=30, stateful_step_count=30)
