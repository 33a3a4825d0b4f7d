"""The cluster as clients see it: where the shards are, and the `Store` over them.

One `Cluster` serves all connections of a process. A request that only reads is sent again
when its shard is lost, until `PATIENCE_S` is over. A commit whose shard is lost is never sent
again blindly: every participant is asked what became of it first, so it happens once or not
at all, and the caller learns which.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from backend.lock_messages import EndLocks, LockRows, RowLocked
from backend.messages import (
    Allocate,
    AskEpoch,
    AskStatus,
    AskViews,
    EndScan,
    Found,
    Get,
    Lookup,
    Message,
    Scan,
    ShardStatus,
    Stop,
    UnknownView,
)
from backend.recorded_views import RecordedViews
from backend.sharded_views import ShardedViews
from backend.shared_view import SharedViews
from backend.store import CommitResult, Conflict, Locked, Owner, Part, Stored
from backend.transport import Handler, Peer, connect
from backend.view_definition import ViewDefinition
from backend.view_messages import HostedViews
from backend.view_range import Range
from controller.registry import Address
from dataflow import epoch_messages
from dataflow.epoch_messages import Committed, Inquire, Outcome, Stage, StaleSchema, Withdrawn
from dataflow.errors import Condition, MillraceError, Retryable
from persistence.layout import shard_of

PATIENCE_S = 20.0
"""How long a request waits for a shard that is lost: Spark restarts workers within seconds."""

log = logging.getLogger(__name__)


class Cluster:
    """Connections to all shards, and the store over them."""

    def __init__(self, shard_count: int, secret: bytes) -> None:
        self._shard_count = shard_count
        self._secret = secret
        self._client = os.urandom(8)
        self._sequence = 0
        self._lock_owners = 0
        self._outstanding: set[int] = set()
        self._addresses: dict[int, Address] = {}
        self._last_known: dict[int, Address] = {}
        self._moved = asyncio.Event()
        self._peers: dict[int, Peer] = {}
        self._connecting: dict[int, asyncio.Lock] = {}
        self.recorded = RecordedViews()
        self._sharded = ShardedViews(shard_count, self.ask_now)
        self.shared = SharedViews(None if shard_count == 1 else self._sharded)

    def set_addresses(self, addresses: dict[int, Address]) -> None:
        """Where the shards are now, from the registry."""
        if any(self._last_known.get(shard, address) != address for shard, address in addresses.items()):
            self.shared.forget()
            self._sharded.forget()
        self._last_known |= addresses
        self._addresses = addresses
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def addresses(self) -> Mapping[int, Address]:
        return self._addresses

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    # --- requests ---------------------------------------------------------------------------

    async def _peer(self, shard: int, deadline: float) -> Peer:
        """A connection to the shard; waits for the shard to come (back) if need be."""
        peer = self._peers.get(shard)
        if peer is not None and not peer.lost:
            return peer
        loop = asyncio.get_running_loop()
        async with self._connecting.setdefault(shard, asyncio.Lock()):
            delay_s = 0.02
            while True:
                peer = self._peers.get(shard)
                if peer is not None and not peer.lost:
                    return peer
                moved, address = self._moved, self._addresses.get(shard)
                if address is not None:
                    try:
                        peer = await connect(
                            address.host,
                            address.port,
                            self._secret,
                            on_lost=lambda peer: self._sharded.forget(shard),
                        )
                        self._peers[shard] = peer
                        return peer
                    except (OSError, TimeoutError) as error:
                        log.debug("shard %d at %s: %s", shard, address, error)
                if loop.time() >= deadline:
                    raise Retryable(Condition.SHARD_UNREACHABLE, shard)
                try:
                    await asyncio.wait_for(moved.wait(), delay_s)
                except TimeoutError:
                    delay_s = min(delay_s * 2, 0.5)

    async def ask(self, shard: int, message: Message) -> Any:
        """The answer to a request that may safely be sent twice."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            peer = await self._peer(shard, deadline)
            try:
                return await peer.ask(message)
            except ConnectionError:
                continue

    async def ask_now(self, shard: int, message: Message) -> Any:
        """The answer of a shard that is there; waits for none that is lost."""
        peer = self._peers.get(shard)
        if (peer is None or peer.lost) and shard in self._connecting and self._connecting[shard].locked():
            raise Retryable(Condition.SHARD_UNREACHABLE, shard)
        peer = await self._peer(shard, 0)
        try:
            return await peer.ask(message)
        except ConnectionError as error:
            raise Retryable(Condition.SHARD_UNREACHABLE, shard) from error

    async def open(self, shard: int, handler: Handler, on_lost: Callable[[Peer], None]) -> Peer:
        """A connection of its own to a shard, on which that may ask as well; waits for the shard."""
        while True:
            moved, address = self._moved, self._addresses.get(shard)
            if address is not None:
                try:
                    return await connect(address.host, address.port, self._secret, handler, on_lost=on_lost)
                except (OSError, TimeoutError) as error:
                    log.debug("shard %d at %s: %s", shard, address, error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), 0.5)

    async def status(self, shard: int) -> ShardStatus:
        answer = await self.ask(shard, AskStatus())
        assert isinstance(answer, ShardStatus)
        return answer

    async def stop_workers(self) -> None:
        """Ask every shard that answers to close cleanly."""

        async def stop(shard: int) -> None:
            peer = await self._peer(shard, 0)
            await peer.ask(Stop())

        await asyncio.gather(*(stop(shard) for shard in self._addresses), return_exceptions=True)

    # --- the store --------------------------------------------------------------------------

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
        self,
        shard: int,
        start: bytes,
        stop: bytes,
        *,
        resolve: bytes | None = None,
        reverse: bool = False,
        epoch: int = 0,
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

    @property
    def inherited(self) -> set[bytes]:
        return self.recorded.inherited

    @property
    def shared_views(self) -> SharedViews:
        return self.shared

    async def lookup_view(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        if self._shard_count != 1:
            rows = await self._sharded.lookup(definition, keys, part)
            if rows is not None:
                self.recorded.answered(definition)
            return rows
        found = self.shared.lookup(definition, keys, part)
        return found if found is not None else await self.ask_view(definition, keys, part)

    async def ask_view(
        self, definition: ViewDefinition, keys: bytes, part: Range | None = None
    ) -> list[bytes] | None:
        """As `lookup_view`, but of the worker, which fills what is missing."""
        wanted = Lookup(definition.name, keys, None if part is None else part.encoded())
        answer = await self.ask(0, wanted)
        if isinstance(answer, UnknownView):
            added = await self.ask(0, self.recorded.request(definition))
            if isinstance(added, UnknownView):
                return None
            answer = await self.ask(0, wanted)
        if not isinstance(answer, Found):
            return None
        self.shared.learn(definition.name, answer.file)
        self.recorded.answered(definition)
        return answer.rows

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        shards = range(self._shard_count)
        found: list[HostedViews] = await asyncio.gather(*(self.ask(shard, AskViews()) for shard in shards))
        return list(zip(shards, found))

    async def allocate(self, counter: bytes, count: int, floor: int = 0) -> int:
        answer = await self.ask(self.shard_of(counter), Allocate(counter, count, floor))
        return int(answer.first)

    def lock_owner(self) -> Owner:
        self._lock_owners += 1
        return self._client, -self._lock_owners

    async def lock(
        self, owner: Owner, keys: Sequence[tuple[int, bytes]], shared: bool, waiting: str, timeout_s: float
    ) -> tuple[list[Stored | None], list[int]]:
        by_shard: dict[int, list[int]] = {}
        for place, (shard, _) in enumerate(keys):
            by_shard.setdefault(shard, []).append(place)
        requests = [
            asyncio.ensure_future(
                self.ask(shard, LockRows(owner, [keys[place][1] for place in places], shared, waiting))
            )
            for shard, places in by_shard.items()
        ]
        values: list[Stored | None] = [None] * len(keys)
        skipped: list[int] = []
        try:
            async with asyncio.timeout(timeout_s):
                answers = await asyncio.gather(*requests)
        except BaseException as error:
            for request in requests:
                request.cancel()
            self._end_locks(owner, by_shard, waiting_only=True)
            if isinstance(error, TimeoutError):
                raise Retryable(Condition.LOCK_WAIT_TIMEOUT) from None
            raise
        for places, answer in zip(by_shard.values(), answers):
            for place, value in zip(places, answer.values, strict=True):
                values[place] = value
            skipped += (places[number] for number in answer.skipped)
        return values, skipped

    def unlock(self, owner: Owner, shards: Iterable[int]) -> None:
        self._end_locks(owner, shards)

    def _end_locks(self, owner: Owner, shards: Iterable[int], waiting_only: bool = False) -> None:
        for shard in shards:
            peer = self._peers.get(shard)
            if peer is not None:  # else the locks have gone with the connection
                peer.send(EndLocks(owner, waiting_only))

    async def commit(
        self, parts: Mapping[int, Part], tables: Mapping[int, int], owner: Owner | None = None
    ) -> CommitResult:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            outcomes = await self._commit_once(parts, list(tables.items()), deadline, owner)
            withdrawn = 0
            for shard, outcome in outcomes.items():
                if isinstance(outcome, RowLocked):
                    return Locked(shard, outcome.key)
                if isinstance(outcome, epoch_messages.Conflict):
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

    async def _commit_once(
        self, parts: Mapping[int, Part], tables: list[tuple[int, int]], deadline: float, owner: Owner | None
    ) -> dict[int, Outcome | RowLocked]:
        """Stage one transaction and learn each participant's outcome."""
        peers = {shard: await self._peer(shard, deadline) for shard in parts}
        sequence, self._sequence = self._sequence, self._sequence + 1
        transaction = (self._client, sequence)
        self._outstanding.add(sequence)
        participants = tuple(sorted(parts))
        try:
            requests = {
                asyncio.ensure_future(
                    peers[shard].ask(
                        Stage(
                            transaction,
                            min(self._outstanding),
                            participants,
                            part.writes,
                            part.checks,
                            tables,
                            owner,
                        )
                    )
                ): shard
                for shard, part in parts.items()
            }
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
                    found = await asyncio.gather(*(self._inquire(shard, transaction) for shard in unknown))
                    outcomes.update(zip(unknown, found, strict=True))
                    break
            if refusal is not None:
                raise refusal
            return outcomes
        finally:
            self._outstanding.discard(sequence)

    async def _inquire(self, shard: int, transaction: tuple[bytes, int]) -> Outcome:
        try:
            outcome: Outcome = await self.ask(shard, Inquire(transaction))
            return outcome
        except Retryable as error:
            raise MillraceError(Condition.OUTCOME_UNKNOWN, shard) from error
