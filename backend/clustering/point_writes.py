"""Writes of one row, sent to the worker as parameters, all of one turn of the event loop together.

A statement is made known to the worker when it is first sent there, in the message before. Everything
that is asked for in one turn is one message and one transaction for each statement. Who asked is called back with a result
(`backend.execution.writes.point_write`), ELSEWHERE if the statement has to be executed as any other, or an error: the worker
was lost, and nobody can say what became of the transaction. Otherwise the loss of a worker is not seen: what it had committed is
asked for and found, what it had not is withdrawn for good and executed elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

from backend.network.messages import Message
from backend.network.statement_messages import AddStatement, Plain, RunStatements, UnknownStatement
from backend.network.transport import Peer
from dataflow.commit.epoch_messages import Committed, Outcome, TransactionId
from dataflow.commit.statement_stage import ELSEWHERE
from dataflow.errors import MillraceError

Written = Callable[[int | MillraceError], None]
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

    async def inquire(self, shard: int, transaction: TransactionId) -> Outcome: ...


class PointWrite:
    """A statement that the worker runs."""

    __slots__ = ("_writes", "definition", "name", "parameter_count")

    def __init__(self, writes: PointWrites, definition: bytes, parameter_count: int) -> None:
        self._writes = writes
        self.definition = definition
        self.name = blake2b(definition, digest_size=16).digest()
        self.parameter_count = parameter_count

    def ask(self, parameters: tuple[Plain, ...], then: Written) -> None:
        self._writes.ask(self, parameters, then)

    def takes(self, parameters: Sequence[object]) -> bool:
        """Whether these parameters travel as they are."""
        if len(parameters) != self.parameter_count or not PLAIN.issuperset(map(type, parameters)):
            return False
        return all(type(each) is not int or INTEGER_MIN <= each <= INTEGER_MAX for each in parameters)


class PointWrites:
    """Those of one client to the one worker, which `find_peer` gives the connection to, if there is one."""

    def __init__(self, find_peer: Callable[[], Peer | None], transactions: Transactions) -> None:
        self._find_peer = find_peer
        self._transactions = transactions
        self._asked: dict[bytes, tuple[PointWrite, list[tuple[Plain, ...]], list[Written]]] = {}
        self._peer: Peer | None = None
        self._known: set[bytes] = set()
        """What the peer was told of."""
        self._inquiries: set[asyncio.Task[None]] = set()

    def ask(self, write: PointWrite, parameters: tuple[Plain, ...], then: Written) -> None:
        asked = self._asked
        if not asked:
            asyncio.get_running_loop().call_soon(self._send)
        found = asked.get(write.name)
        if found is None:
            asked[write.name] = (write, [parameters], [then])
        else:
            found[1].append(parameters)
            found[2].append(then)

    def _send(self) -> None:
        asked, self._asked = self._asked, {}
        peer = self._find_peer()
        if peer is not self._peer:
            self._peer = peer
            self._known.clear()
        for write, rows, thens in asked.values():
            if peer is None or peer.lost:
                _answer(thens, [ELSEWHERE] * len(thens))
                continue
            if write.name not in self._known:
                self._known.add(write.name)
                peer.ask_later(AddStatement(write.name, write.definition), _ignore)
            transaction, settled = self._transactions.begin_transaction()
            message = RunStatements(transaction, settled, write.name, rows)
            peer.ask_later(message, _Sent(self, transaction, write.name, thens))

    def answered(self, transaction: TransactionId, name: bytes, thens: list[Written], answer: Message | None) -> None:
        if type(answer) is Committed:
            self._transactions.end_transaction(transaction)
            _answer(thens, answer.results)
        elif type(answer) is UnknownStatement:
            self._transactions.end_transaction(transaction)
            self._known.discard(name)
            _answer(thens, [ELSEWHERE] * len(thens))
        else:
            inquiry = asyncio.get_running_loop().create_task(self._inquire(transaction, thens))
            self._inquiries.add(inquiry)
            inquiry.add_done_callback(self._inquiries.discard)

    async def _inquire(self, transaction: TransactionId, thens: list[Written]) -> None:
        """The answer was lost, or is an error: what became of it?"""
        results: Sequence[int | MillraceError] = [ELSEWHERE] * len(thens)
        try:
            outcome = await self._transactions.inquire(0, transaction)
            if isinstance(outcome, Committed):
                results = outcome.results
        except MillraceError as error:
            results = [error] * len(thens)
        finally:
            self._transactions.end_transaction(transaction)
        _answer(thens, results)


class _Sent:
    """One message under way."""

    __slots__ = ("_name", "_thens", "_transaction", "_writes")

    def __init__(self, writes: PointWrites, transaction: TransactionId, name: bytes, thens: list[Written]) -> None:
        self._writes = writes
        self._transaction = transaction
        self._name = name
        self._thens = thens

    def __call__(self, answer: Message | None) -> None:
        self._writes.answered(self._transaction, self._name, self._thens, answer)


def _answer(thens: list[Written], results: Sequence[int | MillraceError]) -> None:
    for then, result in zip(thens, results, strict=True):
        then(result)


def _ignore(answer: object) -> None:
    """If it is not known, the next message says so."""
