"""Statements of one process that want the same row: run one after the other, committed together.

A row that many update at once is locked by one of them at a time. Instead of one commit for
each, whoever comes while the row is waited for joins in: the statements are run in the order in
which they came, each on what those before it have written, and one commit makes all of them
durable. That is as if each had been a transaction of its own, right after the other.

Invariants:
- Nobody hears of an outcome, or an error, before the commit that it depends on has happened.
- A statement that fails takes back its own writes and nobody else's.
- Who gives up while it waits has not been run, or is committed with the others: a convoy is
  driven by a task of its own, which no connection ends.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.clustering.store import Address, Committed, Locked, StaleSchema, Store
from backend.execution.held_locks import TIMEOUT_S, HeldLocks, LockRefused
from backend.execution.outcome import Answer
from backend.execution.transaction import SchemaChanged, Transaction
from controller.sql.locking import EXCLUSIVE
from dataflow.errors import Condition, MillraceError, Retryable

MEMBERS_MAX = 64
"""As many statements share a commit."""
FOLLOWER_LOCK_S = 0.02
"""How long a convoy waits for a row that one of its later members wants besides."""
TRIES_MAX = 50
KNOWN_MAX = 1_000
"""So many statements are remembered with the row that they had to wait for."""


class ConvoyRun(Protocol):
    async def __call__(self, transaction: Transaction, assume_absent: bool = False) -> Answer: ...


class Contended(Exception):
    """A statement of this process has the row, or waits for it: better join those who do."""

    def __init__(self, address: Address) -> None:
        self.address = address


class RunAlone(Exception):
    """The statement is not for a convoy: it waits for something else."""


@dataclass(slots=True, eq=False)
class _Member:
    run: ConvoyRun
    lock_timeout_s: float
    done: asyncio.Future[Answer]


class Convoys:
    """The convoys of a process, by the row that each is for. `pause_seconds` is for tries that were lost."""

    def __init__(self, store: Store, pause_seconds: Callable[[int], float]) -> None:
        self._store = store
        self._pause_seconds = pause_seconds
        self._entered: set[Address] = set()
        self._waiting: dict[Address, deque[_Member]] = {}
        self._driving: set[asyncio.Task[None]] = set()
        self._known: OrderedDict[Hashable, Address] = OrderedDict()

    def enter(self, addresses: Sequence[Address]) -> None:
        """A statement on its own is about to wait for these rows; `Contended` if another is there before it."""
        for address in addresses:
            if address in self._entered or address in self._waiting:
                raise Contended(address)
        self._entered.update(addresses)

    def leave(self, addresses: Sequence[Address]) -> None:
        self._entered.difference_update(addresses)

    def known(self, statement: Hashable) -> Address | None:
        """The row that a convoy is under way for, if this statement has had to wait for it before."""
        address = self._known.get(statement)
        return address if address in self._waiting else None

    async def join(self, statement: Hashable, address: Address, run: ConvoyRun, timeout_s: float) -> Answer:
        """The outcome of `run`, which wants the row; `RunAlone` if it has to see for itself."""
        self._known[statement] = address
        self._known.move_to_end(statement)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        member = _Member(run, timeout_s, asyncio.get_running_loop().create_future())
        queue = self._waiting.get(address)
        if queue is None:
            queue = self._waiting[address] = deque()
            task = asyncio.ensure_future(self._drive(address, queue))
            self._driving.add(task)
            task.add_done_callback(self._driving.discard)
        queue.append(member)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(member.done)
        except TimeoutError:
            if member in queue:
                raise LockRefused(Condition.LOCK_WAIT_TIMEOUT) from None
            return await member.done  # it has been run: only the commit says what became of it
        finally:
            if member in queue:
                queue.remove(member)

    async def _drive(self, address: Address, queue: deque[_Member]) -> None:
        try:
            while queue:
                await self._commit_some(queue)
        finally:
            del self._waiting[address]
            for member in queue:
                _fail(member, RunAlone())

    async def _commit_some(self, queue: deque[_Member]) -> None:
        """One commit, of as many members as come while the first waits for its turn."""
        members: list[_Member] = []
        locks = HeldLocks(self._store, TIMEOUT_S)
        try:
            for attempt in range(TRIES_MAX):
                transaction = Transaction(self._store, locks=locks, locking=True)
                outcomes = await self._run_all(members, queue, transaction)
                if not members:
                    return
                result = await transaction.try_commit()
                if isinstance(result, Committed):
                    for member in members:
                        outcome = outcomes[member]
                        if isinstance(outcome, BaseException):
                            _fail(member, outcome)
                        elif not member.done.done():
                            member.done.set_result(outcome)
                    return
                if isinstance(result, StaleSchema):
                    raise SchemaChanged
                if isinstance(result, Locked):
                    locks.timeout_s = TIMEOUT_S
                    await locks.lock([(result.shard, result.key)], EXCLUSIVE)
                elif attempt:
                    await asyncio.sleep(self._pause_seconds(attempt))
            raise Retryable(Condition.DEADLOCK)
        except LockRefused:
            for member in members:
                _fail(member, RunAlone())
        except Exception as error:  # nothing of it has happened, or the error says so
            for member in members:
                _fail(member, error)
        finally:
            locks.release()

    async def _run_all(
        self, members: list[_Member], queue: deque[_Member], transaction: Transaction
    ) -> dict[_Member, Answer | BaseException]:
        """Run the members, and those that wait behind them, who become members."""
        outcomes: dict[_Member, Answer | BaseException] = {}
        for member in [*members]:
            await self._run_one(member, members, transaction, outcomes)
        while queue and len(members) < MEMBERS_MAX:
            member = queue.popleft()
            members.append(member)
            if not await self._run_one(member, members, transaction, outcomes):
                break  # it may have taken a while already
        return outcomes

    async def _run_one(
        self,
        member: _Member,
        members: list[_Member],
        transaction: Transaction,
        outcomes: dict[_Member, Answer | BaseException],
    ) -> bool:
        """False if the member has to go its own way."""
        mark = transaction.mark()
        is_first = not outcomes
        transaction.locks.timeout_s = member.lock_timeout_s if is_first else FOLLOWER_LOCK_S
        try:
            outcomes[member] = await member.run(transaction)
        except Retryable as error:
            transaction.rollback_to_mark(mark)
            members.remove(member)
            _fail(member, error if is_first and error.condition is Condition.LOCK_WAIT_TIMEOUT else RunAlone())
            return False
        except MillraceError as error:
            transaction.rollback_to_mark(mark)
            outcomes[member] = error
        return True


def _fail(member: _Member, error: BaseException) -> None:
    if not member.done.done():
        member.done.set_exception(error)
