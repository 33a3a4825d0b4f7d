"""The cluster as clients see it: the `Store` over all shards.

One `Cluster` serves all connections of a process. A request that only reads is sent again
when its shard is lost. A commit whose shard is lost is never sent again blindly: every
participant is asked what became of it first, so it happens once or not at all, and the
caller learns which.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from backend.clustering.column_reads import scan_columns
from backend.clustering.leader import Planner
from backend.clustering.misses import Misses
from backend.clustering.point_writes import PointWrites
from backend.clustering.staged_parts import is_large, send_parts
from backend.clustering.store import (
    COLUMN_ROWS_MIN,
    CommitPart,
    CommitResult,
    Conflict,
    Locked,
    Owner,
    Stored,
)
from backend.network.connections import PATIENCE_S, ShardConnections
from backend.network.lock_messages import EndLocks, LockRows, RowLocked
from backend.network.messages import (
    Allocate,
    AskEpoch,
    AskViews,
    EndScan,
    Get,
    HoldEpoch,
    ReleaseEpoch,
    Scan,
)
from backend.network.transport import Peer
from backend.network.view_messages import HostedViews
from backend.shared_memory.parts import settled
from backend.views.shared_view import SharedViews
from backend.views.view_asking import ViewAsking
from backend.views.view_definition import ViewDefinition, is_packed
from backend.views.view_range import Range
from dataflow.commit import epoch_messages
from dataflow.commit.epoch_messages import (
    Committed,
    Inquire,
    Outcome,
    Stage,
    StaleSchema,
    TransactionId,
    Withdrawn,
)
from dataflow.errors import Condition, CorruptState, MillraceError, Retryable
from persistence.files.free_space import disk_full
from persistence.layout import shard_of

if TYPE_CHECKING:
    from backend.jobs.data_jobs import DataJobs

LOCKED_AT_ONCE = 250
"""So many keys are locked by one request: a worker has locked and read them in a few milliseconds."""
EPOCH_TRIES_MAX = 5
"""An epoch may be gone before all shards have heard that it is wanted."""


class Cluster(ShardConnections):
    """The store over all shards."""

    column_rows_min: int | None = COLUMN_ROWS_MIN
    jobs: DataJobs | None = None
    planner: Planner | None = None
    scan_columns = scan_columns

    def __init__(self, shard_count: int, secret: bytes) -> None:
        super().__init__(secret)
        self._shard_count = shard_count
        self._client = os.urandom(8)
        self._sequence = 0
        self._lock_owners = 0
        self._outstanding: set[int] = set()
        self.inherited: set[bytes] = set()
        self.known_views: set[bytes] = set()
        self.shared = SharedViews(shard_count)
        self.shared.missed_keys = Misses(shard_count, self._peers.get, self.shared.learn, self.shared.lookup, lambda: self.shared.seen.epoch)
        # Without one of several shards a query can be evaluated; without the only one nothing can.
        self._asking = ViewAsking(shard_count, self.ask if shard_count == 1 else self.ask_now, self.shared, self._maintain, self.known_views)
        self.point_writes = PointWrites(self._writable_peer, self)

    def _shard_lost(self, shard: int) -> None:
        self.shared.shard_lost(shard)

    def _shards_moved(self) -> None:
        self.shared.forget()

    def close(self) -> None:
        super().close()
        self.shared.forget()

    @property
    def shard_count(self) -> int:
        return self._shard_count

    def shard_of(self, key: bytes) -> int:
        return shard_of(key, self._shard_count)

    async def read_epoch(self) -> int:
        if self._shard_count == 1:
            return 0
        answer = await self.ask(0, AskEpoch())
        return int(answer.epoch)

    async def hold_epoch(self) -> int:
        holding = asyncio.ensure_future(self._hold_epoch())
        try:
            return await asyncio.shield(holding)
        except asyncio.CancelledError:
            holding.add_done_callback(lambda held: None if held.exception() else self.release_epoch(held.result()))
            raise

    async def _hold_epoch(self) -> int:
        if self._shard_count == 1:
            return int((await self.ask(0, HoldEpoch())).epoch)
        for _ in range(EPOCH_TRIES_MAX - 1):
            try:
                return await self.hold_on_all(await self.read_epoch())
            except Retryable as error:
                if error.condition is Condition.SHARD_UNREACHABLE:
                    raise  # it has been waited for
        return await self.hold_on_all(await self.read_epoch())

    async def hold_on_all(self, epoch: int) -> int:
        """As `hold_epoch`, of one that is kept or was a moment ago."""
        requests = [self.ask(shard, HoldEpoch(epoch)) for shard in range(self._shard_count)]
        answers = await asyncio.gather(*requests, return_exceptions=True)
        errors = [each for each in answers if isinstance(each, BaseException)]
        if errors:
            # Other statements may hold the same epoch: a shard that has not held it for this one releases nothing.
            self._release_epoch(epoch, [shard for shard, each in enumerate(answers) if not isinstance(each, BaseException)])
            raise errors[0]
        return epoch

    def release_epoch(self, epoch: int) -> None:
        self._release_epoch(epoch, self._peers)

    def _release_epoch(self, epoch: int, shards: Iterable[int]) -> None:
        for shard in shards:
            if (peer := self._peers.get(shard)) is not None:
                peer.send(ReleaseEpoch(epoch))

    async def get(self, keys: Sequence[tuple[int, bytes]], epoch: int = 0) -> list[Stored | None]:
        by_shard: dict[int, list[int]] = {}
        for position, (shard, _) in enumerate(keys):
            by_shard.setdefault(shard, []).append(position)
        if len(by_shard) == 1:
            [shard] = by_shard
            answer = await self.ask(shard, Get([key for _, key in keys], epoch))
            return list(answer.values)
        found: list[Stored | None] = [None] * len(keys)

        async def ask(shard: int, positions: list[int]) -> None:
            answer = await self.ask(shard, Get([keys[position][1] for position in positions], epoch))
            for position, value in zip(positions, answer.values, strict=True):
                found[position] = value

        await asyncio.gather(*(ask(shard, positions) for shard, positions in by_shard.items()))
        return found

    async def scan(
        self, shard: int, start: bytes, stop: bytes, *, resolve: bytes | None = None, reverse: bool = False, epoch: int = 0
    ) -> AsyncIterator[list[tuple[bytes, int, bytes]]]:
        answer = await self.ask(shard, Scan(0, start, stop, resolve, reverse, epoch))
        peer = self._peers[shard]
        try:
            while answer.scan:
                yield answer.rows
                try:
                    answer = await peer.ask(Scan(answer.scan))
                except ConnectionError as error:
                    raise Retryable(Condition.SHARD_UNREACHABLE, shard) from error
        finally:
            if answer.scan:
                peer.send(EndScan(answer.scan))

    async def _maintain(self, definition: ViewDefinition) -> bool:
        planner = self.planner
        return planner is not None and definition.name in await planner.maintain([definition.request()])

    @property
    def shared_views(self) -> SharedViews:
        return self.shared

    async def lookup_view(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        found = self.shared.lookup(definition, keys, part)
        if found is None and not is_packed(keys):
            found = await settled(self.shared.reader(definition.name), lambda: self.shared.lookup(definition, keys, part))
        return found if found is not None else await self._asking.lookup(definition, keys, part)

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        shards = range(self._shard_count)
        found: list[HostedViews] = await asyncio.gather(*(self.ask(shard, AskViews()) for shard in shards))
        return list(zip(shards, found))

    async def allocate(self, counter: bytes, count: int, floor: int = 0) -> int:
        answer = await self.ask(self.shard_of(counter), Allocate(counter, count, floor))
        return int(answer.first)

    async def lower(self, counter: bytes, expected: int, number: int) -> int:
        answer = await self.ask(self.shard_of(counter), Allocate(counter, 0, number, expected))
        return int(answer.first)

    def lock_owner(self) -> Owner:
        self._lock_owners += 1
        return self._client, -self._lock_owners

    async def lock(
        self, owner: Owner, keys: Sequence[tuple[int, bytes]], shared: bool, waiting: str, timeout_s: float
    ) -> tuple[list[Stored | None], list[int]]:
        by_shard: dict[int, list[int]] = {}
        for place in sorted(range(len(keys)), key=keys.__getitem__):
            by_shard.setdefault(keys[place][0], []).append(place)
        values: list[Stored | None] = [None] * len(keys)
        skipped: list[int] = []
        try:
            async with asyncio.timeout(timeout_s):
                for shard, wanted in by_shard.items():  # who wants the same rows asks the shards in the same order
                    for first in range(0, len(wanted), LOCKED_AT_ONCE):
                        places = wanted[first : first + LOCKED_AT_ONCE]
                        request = LockRows(owner, [keys[place][1] for place in places], shared, waiting)
                        answer = await self.ask(shard, request)
                        for place, value in zip(places, answer.values, strict=True):
                            values[place] = value
                        skipped += (places[number] for number in answer.skipped)
        except BaseException as error:
            self._end_locks(owner, by_shard, waiting_only=True)
            if isinstance(error, TimeoutError):
                raise Retryable(Condition.LOCK_WAIT_TIMEOUT) from None
            raise
        return values, skipped

    def unlock(self, owner: Owner, shards: Iterable[int]) -> None:
        self._end_locks(owner, shards)

    def _end_locks(self, owner: Owner, shards: Iterable[int], waiting_only: bool = False) -> None:
        for shard in shards:
            peer = self._peers.get(shard)
            if peer is not None:  # else the locks have gone with the connection
                peer.send(EndLocks(owner, waiting_only))

    async def commit(
        self, parts: Mapping[int, CommitPart], tables: Mapping[int, int], owner: Owner | None = None
    ) -> CommitResult:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        for shard, address in self._addresses.items():  # an epoch is one of all shards
            if address.damage:
                raise CorruptState(address.damage)
            if address.needed_bytes:
                raise disk_full(f"shard {shard}", address.needed_bytes)
        while True:
            outcomes = await self._commit_once(parts, list(tables.items()), deadline, owner)
            withdrawn = 0
            for shard, outcome in outcomes.items():
                if isinstance(outcome, RowLocked):
                    return Locked(shard, outcome.key)
                if isinstance(outcome, epoch_messages.VersionConflict):
                    return Conflict(shard, outcome.key, outcome.found)
                if isinstance(outcome, StaleSchema):
                    return outcome
                withdrawn += isinstance(outcome, Withdrawn)
            if not withdrawn:
                return Committed(max(o.epoch for o in outcomes.values() if isinstance(o, Committed)))
            assert withdrawn == len(outcomes), f"committed on some shards only: {outcomes}"
            if asyncio.get_running_loop().time() > deadline:
                raise Retryable(Condition.SHARD_UNREACHABLE, "/".join(map(str, parts)))
            await asyncio.sleep(random.random() * 0.02)

    def _writable_peer(self, shard: int) -> Peer | None:
        """The connection to the shard, if it is there and takes commits."""
        address = self._addresses.get(shard)
        return None if address is None or address.damage or address.needed_bytes else self._peers.get(shard)

    def begin_transaction(self) -> tuple[TransactionId, int]:
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._outstanding.add(sequence)
        return (self._client, sequence), min(self._outstanding)

    def end_transaction(self, transaction: TransactionId) -> None:
        self._outstanding.discard(transaction[1])

    async def _commit_once(
        self, parts: Mapping[int, CommitPart], tables: list[tuple[int, int]], deadline: float, owner: Owner | None
    ) -> dict[int, Outcome | RowLocked]:
        """Stage one transaction and learn each participant's outcome."""
        peers = {shard: await self._peer(shard, deadline) for shard in parts}
        transaction, _ = self.begin_transaction()
        participants = tuple(sorted(parts))
        try:
            counts, refusals = await self._send_parts(peers, transaction, parts, owner)
            if refusals:
                return {shard: refusals.get(shard, Withdrawn()) for shard in parts}
            settled = min(self._outstanding)
            stages = {
                shard: Stage(transaction, settled, participants, [], [], tables, owner, parts=counts[shard])
                if shard in counts
                else Stage(
                    transaction, settled, participants, part.writes, part.checks, tables, owner, tuple(part.puts), tuple(part.unchanged)
                )
                for shard, part in parts.items()
            }
            if len(stages) == 1:
                return {shard: await self._commit_alone(peers[shard], shard, stage) for shard, stage in stages.items()}
            requests = {asyncio.ensure_future(peers[shard].ask(stage)): shard for shard, stage in stages.items()}
            outcomes: dict[int, Outcome | RowLocked] = {}
            refusal: MillraceError | None = None
            waiting = set(requests)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                certain = True
                for request in done:
                    error = request.exception()
                    if error is None:
                        outcomes[requests[request]] = request.result()
                        certain &= isinstance(request.result(), Committed)
                    elif isinstance(error, ConnectionError):
                        certain = False
                    elif isinstance(error, MillraceError):  # the others must not wait for this part
                        certain, refusal = False, error
                    else:
                        raise error
                if not certain:
                    for request in waiting:
                        request.cancel()
                    unknown = [shard for shard in parts if shard not in outcomes]
                    found = await asyncio.gather(*(self.inquire(shard, transaction) for shard in unknown))
                    outcomes.update(zip(unknown, found, strict=True))
                    break
            if refusal is not None:
                raise refusal
            return outcomes
        finally:
            self.end_transaction(transaction)

    async def _send_parts(
        self, peers: Mapping[int, Peer], transaction: TransactionId, parts: Mapping[int, CommitPart], owner: Owner | None
    ) -> tuple[dict[int, int], dict[int, Outcome | RowLocked]]:
        """Send what is large in advance: how many parts it took on each shard, and why it was refused on others.

        If any shard refuses, or is lost, nothing of it stays anywhere.
        """
        large = {shard: part for shard, part in parts.items() if is_large(part)}
        if not large:
            return {}, {}
        sending = [send_parts(peers[shard], transaction, owner, part) for shard, part in large.items()]
        found: list[int | Outcome | RowLocked | BaseException] = []
        try:
            found += await asyncio.gather(*sending, return_exceptions=True)
        finally:
            if not found or not all(isinstance(each, int) for each in found):
                for shard in large:
                    peers[shard].send(Inquire(transaction))
        counts: dict[int, int] = {}
        refusals: dict[int, Outcome | RowLocked] = {}
        for shard, each in zip(large, found):
            if isinstance(each, int):
                counts[shard] = each
            elif isinstance(each, ConnectionError):
                refusals[shard] = Withdrawn()
            elif isinstance(each, BaseException):
                raise each
            else:
                refusals[shard] = each
        return counts, refusals

    async def _commit_alone(self, peer: Peer, shard: int, stage: Stage) -> Outcome | RowLocked:
        """The outcome of a transaction of one shard."""
        try:
            outcome: Outcome | RowLocked = await peer.ask(stage)
            return outcome
        except ConnectionError:
            return await self.inquire(shard, stage.transaction)
        except MillraceError:
            await self.inquire(shard, stage.transaction)
            raise

    async def inquire(self, shard: int, transaction: tuple[bytes, int]) -> Outcome:
        try:
            outcome: Outcome = await self.ask(shard, Inquire(transaction))
            return outcome
        except Retryable as error:
            raise MillraceError(Condition.OUTCOME_UNKNOWN, shard) from error
