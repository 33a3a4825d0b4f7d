"""Writes of one row, sent to the worker as parameters, all of one turn of the event loop together.

A statement is made known to a worker when it is first sent there, in the message before. Everything
that is asked for in one turn is one message and one transaction for each statement and shard. Who asked is called back with a result
(`backend.execution.writes.point_write`), ELSEWHERE if the statement has to be executed as any other, or an error: the worker
was lost, and nobody can say what became of the transaction. Otherwise the loss of a worker is not seen: what it had committed is
asked for and found, what it had not is withdrawn for good and executed elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Protocol

from backend.network.messages import Allocate, Allocated, Message
from backend.network.statement_messages import AddStatement, Plain, RunStatements, UnknownStatement
from backend.network.transport import Peer
from dataflow.commit.epoch_messages import Committed, Outcome, TransactionId
from dataflow.commit.statement_stage import ELSEWHERE
from dataflow.errors import MillraceError

Written = Callable[[int | MillraceError], None]
Asked = tuple["PointWrite", list[tuple[Plain, ...]], list[Written]]
"""A statement, its parameters, and who asked."""
PLAIN = frozenset({int, float, str, bytes, type(None)})
INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 64) - 1


class Transactions(Protocol):
    """What of the cluster is needed here."""

    def begin_transaction(self) -> tuple[TransactionId, int]:
        """A new one, and the number below which the outcomes of all are known."""
        ...

    def end_transaction(self, transaction: TransactionId) -> None:
        """Its outcome is known."""
        ...

    def shard_of(self, key: bytes) -> int: ...

    async def inquire(self, shard: int, transaction: TransactionId) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class PointRoute:
    """Which worker runs a statement; see `backend.execution.writes.point_route`."""

    shard: Callable[[Sequence[Plain], int], int | None]
    """The shard for these parameters and this AUTO_INCREMENT value; None if the statement has to be executed as any other."""
    counter: bytes = b""
    """Where AUTO_INCREMENT values are fetched first, to follow the parameters; empty if the worker that runs the statement has them."""
    number_min: int = 0


class PointWrite:
    """A statement that a worker runs."""

    __slots__ = ("_writes", "definition", "name", "parameter_count", "route")

    def __init__(self, writes: PointWrites, definition: bytes, route: PointRoute, parameter_count: int) -> None:
        self._writes = writes
        self.definition = definition
        self.name = blake2b(definition, digest_size=16).digest()
        self.parameter_count = parameter_count
        self.route = route

    def ask(self, parameters: tuple[Plain, ...], then: Written) -> bool:
        """False if no worker can run it by itself with these parameters."""
        return self._writes.ask(self, parameters, then)

    def takes(self, parameters: Sequence[object]) -> bool:
        """Whether these parameters travel as they are."""
        if len(parameters) != self.parameter_count or not PLAIN.issuperset(map(type, parameters)):
            return False
        return all(type(each) is not int or INTEGER_MIN <= each <= INTEGER_MAX for each in parameters)


class PointWrites:
    """Those of one client to the workers of shards, which `find_peer` gives the connections to, as far as they are there."""

    def __init__(self, find_peer: Callable[[int], Peer | None], transactions: Transactions) -> None:
        self._find_peer = find_peer
        self._transactions = transactions
        self._asked: dict[tuple[bytes, int], Asked] = {}
        """By statement and shard."""
        self._unnumbered: dict[bytes, Asked] = {}
        """Those that need AUTO_INCREMENT values first."""
        self._known: dict[int, tuple[Peer, set[bytes]]] = {}
        """What each shard's worker was told of."""
        self._inquiries: set[asyncio.Task[None]] = set()

    def ask(self, write: PointWrite, parameters: tuple[Plain, ...], then: Written) -> bool:
        shard = write.route.shard(parameters, 0)
        if shard is None:
            return False
        if not self._asked and not self._unnumbered:
            asyncio.get_running_loop().call_soon(self._send)
        if write.route.counter:
            found = self._unnumbered.get(write.name) or self._unnumbered.setdefault(write.name, (write, [], []))
        else:
            found = self._asked.get((write.name, shard)) or self._asked.setdefault((write.name, shard), (write, [], []))
        found[1].append(parameters)
        found[2].append(then)
        return True

    def _send(self) -> None:
        asked, self._asked = self._asked, {}
        unnumbered, self._unnumbered = self._unnumbered, {}
        for (_, shard), each in asked.items():
            self._run(shard, each)
        for each in unnumbered.values():
            route = each[0].route
            peer = self._find_peer(self._transactions.shard_of(route.counter))
            if peer is None or peer.lost:
                _answer(each[2], [ELSEWHERE] * len(each[2]))
            else:
                peer.ask_later(Allocate(route.counter, len(each[1]), route.number_min), partial(self._numbered, each))

    def _numbered(self, asked: Asked, answer: Message | None) -> None:
        """The AUTO_INCREMENT values are there: each row goes to its shard."""
        write, rows, thens = asked
        if type(answer) is not Allocated:
            _answer(thens, [ELSEWHERE] * len(thens))
            return
        by_shard: dict[int, Asked] = {}
        for number, (parameters, then) in enumerate(zip(rows, thens, strict=True), answer.first):
            shard = write.route.shard(parameters, number)
            assert shard is not None
            found = by_shard.setdefault(shard, (write, [], []))
            found[1].append((*parameters, number))
            found[2].append(then)
        for shard, each in by_shard.items():
            self._run(shard, each)

    def _run(self, shard: int, asked: Asked) -> None:
        write, rows, thens = asked
        peer = self._find_peer(shard)
        if peer is None or peer.lost:
            _answer(thens, [ELSEWHERE] * len(thens))
            return
        told, known = self._known.get(shard, (None, set()))
        if told is not peer:
            _, known = self._known[shard] = (peer, set())
        if write.name not in known:
            known.add(write.name)
            peer.ask_later(AddStatement(write.name, write.definition), _ignore)
        transaction, settled = self._transactions.begin_transaction()
        message = RunStatements(transaction, settled, write.name, rows)
        peer.ask_later(message, partial(self._answered, shard, transaction, write.name, thens))

    def _answered(self, shard: int, transaction: TransactionId, name: bytes, thens: list[Written], answer: Message | None) -> None:
        if type(answer) is Committed:
            self._transactions.end_transaction(transaction)
            _answer(thens, answer.results)
        elif type(answer) is UnknownStatement:
            self._transactions.end_transaction(transaction)
            self._known.pop(shard, None)
            _answer(thens, [ELSEWHERE] * len(thens))
        else:
            inquiry = asyncio.get_running_loop().create_task(self._inquire(shard, transaction, thens))
            self._inquiries.add(inquiry)
            inquiry.add_done_callback(self._inquiries.discard)

    async def _inquire(self, shard: int, transaction: TransactionId, thens: list[Written]) -> None:
        """The answer was lost, or is an error: what became of it?"""
        results: Sequence[int | MillraceError] = [ELSEWHERE] * len(thens)
        try:
            outcome = await self._transactions.inquire(shard, transaction)
            if isinstance(outcome, Committed):
                results = outcome.results
        except MillraceError as error:
            results = [error] * len(thens)
        finally:
            self._transactions.end_transaction(transaction)
        _answer(thens, results)


def _answer(thens: list[Written], results: Sequence[int | MillraceError]) -> None:
    for then, result in zip(thens, results, strict=True):
        then(result)


def _ignore(answer: object) -> None:
    """If it is not known, the next message says so."""
