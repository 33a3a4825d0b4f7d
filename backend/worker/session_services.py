"""Services for sessions of different adapters: user-level locks, and questions to each other.

Worker 0 keeps the locks and passes the questions on. Each adapter has one connection to it for
that; what was locked over it is free once it is gone. So a lock is lost if worker 0 is, and
the adapter is told whose it was: it ends those sessions, as a MySQL server that goes away would.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from backend.clustering.cluster import Cluster
from backend.network.connections import PATIENCE_S
from backend.network.messages import Acknowledged, Message
from backend.network.session_messages import (
    AdapterAnswers,
    AdapterJoined,
    AskAdapters,
    AskReported,
    LockAnswer,
    LockRequest,
    SessionMessage,
    StatementsReported,
)
from backend.network.transport import Peer, answer_with
from backend.worker.named_locks import NamedLocks
from dataflow.errors import Condition, Retryable

ANSWER_TIMEOUT_S = 5.0
REPORTS_MAX = 100

Answer = Callable[[bytes], Awaitable[bytes]]
log = logging.getLogger(__name__)


class Services(Protocol):
    """As a session sees them; an owner is a connection's number."""

    async def acquire(self, name: str, owner: int, timeout_s: float) -> bool:
        """Take the lock, waiting for it; a negative time waits for ever."""
        ...

    async def release(self, name: str, owner: int) -> bool | None:
        """True if released, False if it is another's, None if there is no such lock."""
        ...

    async def release_all(self, owner: int) -> int: ...

    def owner_gone(self, owner: int) -> None:
        """Release all that it had, some time soon."""
        ...

    async def owner(self, name: str) -> int | None: ...

    async def ask_others(self, question: bytes) -> list[bytes]:
        """What the other adapters answer."""
        ...

    def serve(self, answer: Answer, locks_lost: Callable[[int], None]) -> None:
        """From now on `answer` what others ask, and hear of owners who have lost their locks."""
        ...


class LocalServices:
    """For an adapter that is alone: its locks are its own. `joined` has it answer what other processes ask adapters."""

    def __init__(self, joined: ClusterServices | None = None) -> None:
        self._joined = joined
        self._locks: NamedLocks[int] = NamedLocks()

    async def acquire(self, name: str, owner: int, timeout_s: float) -> bool:
        return await self._locks.acquire(name, owner, timeout_s)

    async def release(self, name: str, owner: int) -> bool | None:
        return self._locks.release(name, owner)

    async def release_all(self, owner: int) -> int:
        return self._locks.release_all(owner)

    def owner_gone(self, owner: int) -> None:
        self._locks.release_all(owner)

    async def owner(self, name: str) -> int | None:
        return self._locks.owner(name)

    async def ask_others(self, question: bytes) -> list[bytes]:
        return []

    def serve(self, answer: Answer, locks_lost: Callable[[int], None]) -> None:
        if self._joined is not None:
            self._joined.serve(answer, lambda owner: None)


class ClusterServices:
    """For one of several adapters: asks worker 0."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._peer: Peer | None = None
        self._arrived = asyncio.Event()
        self._tokens = itertools.count(1)
        self._held: Counter[int] = Counter()
        self._answer: Answer | None = None
        self._locks_lost: Callable[[int], None] = lambda owner: None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None

    # --- the connection

    def serve(self, answer: Answer, locks_lost: Callable[[int], None]) -> None:
        self._answer, self._locks_lost = answer, locks_lost
        self._connect()

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._peer is not None:
            self._peer.close()

    def _connect(self) -> None:
        async def connect() -> None:
            peer = await self._cluster.open(0, self._asked, self._lost)
            peer.send(AdapterJoined())
            self._peer = peer
            self._arrived.set()

        self._connecting = asyncio.ensure_future(connect())

    def _lost(self, peer: Peer) -> None:
        if peer is not self._peer:
            return
        self._peer = None
        self._arrived.clear()
        held, self._held = self._held, Counter()
        for owner in +held:
            self._locks_lost(owner)
        with contextlib.suppress(RuntimeError):  # the process ends
            self._connect()

    async def _connected(self) -> Peer:
        try:
            await asyncio.wait_for(self._arrived.wait(), PATIENCE_S)
        except TimeoutError:
            raise Retryable(Condition.SHARD_UNREACHABLE, 0) from None
        assert self._peer is not None
        return self._peer

    async def _ask(self, message: Message) -> Any:
        peer = await self._connected()
        try:
            return await peer.ask(message)
        except ConnectionError as error:
            raise Retryable(Condition.SHARD_UNREACHABLE, 0) from error

    # --- locks

    async def acquire(self, name: str, owner: int, timeout_s: float) -> bool:
        token = next(self._tokens)
        try:
            answer = await self._ask(LockRequest("acquire", owner, name, timeout_s, token))
        except asyncio.CancelledError:
            if self._peer is not None:
                self._peer.send(LockRequest("withdraw", owner, name, token=token))
            raise
        self._held[owner] += answer.value
        return bool(answer.value)

    async def release(self, name: str, owner: int) -> bool | None:
        value = (await self._ask(LockRequest("release", owner, name))).value
        if value:
            self._held[owner] -= 1
        return None if value is None else bool(value)

    async def release_all(self, owner: int) -> int:
        value = (await self._ask(LockRequest("release_all", owner))).value
        del self._held[owner]
        return int(value)

    def owner_gone(self, owner: int) -> None:
        if self._held.pop(owner, 0) and self._peer is not None:
            self._peer.send(LockRequest("release_all", owner))

    async def owner(self, name: str) -> int | None:
        value: int | None = (await self._ask(LockRequest("owner", 0, name))).value
        return value

    # --- questions

    async def ask_others(self, question: bytes) -> list[bytes]:
        answers: list[bytes] = (await self._ask(AskAdapters(question))).answers
        return answers

    def _asked(self, peer: Peer, request: int, message: Any) -> None:
        async def answered(question: bytes) -> Message:
            assert self._answer is not None
            return AdapterAnswers([await self._answer(question)])

        if isinstance(message, AskAdapters):
            answer_with(answered(message.question), peer, request, self._tasks)


class SessionServices:
    """Worker 0's side."""

    def __init__(self) -> None:
        self._locks: NamedLocks[tuple[Peer, int]] = NamedLocks()
        self._waiting: dict[tuple[Peer, int], asyncio.Task[None]] = {}
        self._granted: dict[tuple[Peer, int], int] = {}
        self._owners: dict[Peer, set[int]] = {}
        self._adapters: list[Peer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._reports: dict[bytes, bytes] = {}
        """What clients of the library have run, those that reported last at the end; also of clients that are gone."""

    def handle(self, peer: Peer, request: int, message: SessionMessage) -> None:
        match message:
            case AdapterJoined():
                self._adapters.append(peer)
            case AskAdapters():
                answer_with(self._pass_on(peer, message), peer, request, self._tasks)
            case StatementsReported(client, report):
                self._reports.pop(client, None)
                if len(self._reports) >= REPORTS_MAX:
                    del self._reports[next(iter(self._reports))]
                self._reports[client] = report
                peer.send(Acknowledged(), request)
            case AskReported():
                peer.send(AdapterAnswers(list(self._reports.values())), request)
            case LockRequest(action="acquire"):
                self._acquire(peer, request, message)
            case LockRequest():
                value = self._lock_request(peer, message)
                if request:
                    peer.send(LockAnswer(value), request)

    def peer_lost(self, peer: Peer) -> None:
        if peer in self._adapters:
            self._adapters.remove(peer)
        for owner in self._owners.pop(peer, ()):
            task = self._waiting.pop((peer, owner), None)
            if task is not None:
                task.cancel()
            self._granted.pop((peer, owner), None)
            self._locks.release_all((peer, owner))

    def _acquire(self, peer: Peer, request: int, message: LockRequest) -> None:
        owner = (peer, message.owner)
        self._owners.setdefault(peer, set()).add(message.owner)

        async def acquire() -> None:
            got = await self._locks.acquire(message.name, owner, message.timeout_s)
            self._waiting.pop(owner, None)
            if got:
                self._granted[owner] = message.token
            peer.send(LockAnswer(int(got)), request)

        self._waiting[owner] = asyncio.ensure_future(acquire())

    def _lock_request(self, peer: Peer, message: LockRequest) -> int | None:
        owner = (peer, message.owner)
        match message.action:
            case "release":
                released = self._locks.release(message.name, owner)
                return None if released is None else int(released)
            case "release_all":
                self._owners.get(peer, set()).discard(message.owner)
                self._granted.pop(owner, None)
                return self._locks.release_all(owner)
            case "withdraw":
                task = self._waiting.pop(owner, None)
                if task is not None:
                    task.cancel()
                elif self._granted.pop(owner, 0) == message.token:
                    self._locks.release(message.name, owner)
                return None
            case _:
                found = self._locks.owner(message.name)
                return None if found is None else found[1]

    async def _pass_on(self, asker: Peer, message: AskAdapters) -> Message:
        async def ask(adapter: Peer) -> list[bytes]:
            try:
                answer: AdapterAnswers = await asyncio.wait_for(adapter.ask(message), ANSWER_TIMEOUT_S)
            except (ConnectionError, TimeoutError):
                return []
            return answer.answers

        found = await asyncio.gather(*(ask(adapter) for adapter in self._adapters if adapter is not asker))
        return AdapterAnswers([answer for answers in found for answer in answers])
