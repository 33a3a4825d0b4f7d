"""A worker's side of large transactions: parts are written down, and committed values put into their places.

Both is done a little at a time, in the thread that writes, behind the epochs that came before.
"""

from __future__ import annotations

import asyncio

from backend.network.messages import Acknowledged
from backend.network.transport import Peer
from backend.worker.disk import Disk
from dataflow.commit.epoch_messages import StagePart, TransactionId
from persistence.shard_store import ShardStore

MOVE_PAUSE_S = 0.002
"""Between two moves, so that LevelDB's compactions keep up and nobody's epoch waits for them."""
NO_ROOM_PAUSE_S = 1.0
FREED_KEYS = 2_000
"""So many values of a large transaction are freed at a time."""
CHECKS_KEPT = 10
"""Earlier epochs that hold the values of a large transaction stay readable for so many checks after it."""

Waiting = dict[TransactionId, list[tuple[Peer, int]]]


class LargeCommits:
    """`waiting` are the requests of each transaction that are to be answered."""

    def __init__(self, store: ShardStore, disk: Disk, waiting: Waiting) -> None:
        self._store = store
        self._disk = disk
        self._waiting = waiting
        self._clients: dict[TransactionId, Peer] = {}
        self._is_moving = False
        self._checks = 0

    def begun(self, transaction: TransactionId, client: Peer, request: int) -> None:
        """A part has come."""
        self._clients[transaction] = client
        self._waiting.setdefault(transaction, []).append((client, request))

    def answered(self, transaction: TransactionId) -> None:
        self._clients.pop(transaction, None)

    def lost(self, client: Peer) -> set[TransactionId]:
        """The client is gone; those that it has sent, or begun to send, and that nobody else waits for."""
        gone = {t for t, waiters in self._waiting.items() if all(waiter is client for waiter, _ in waiters)}
        gone |= {transaction for transaction, each in self._clients.items() if each is client}
        for transaction in gone:
            self._waiting.pop(transaction, None)
            self._clients.pop(transaction, None)
        return gone

    def persist(self, part: StagePart) -> None:
        self._disk.aside(lambda: self._store.persist_part(part), lambda _: self._persisted(part.transaction))

    def _persisted(self, transaction: TransactionId) -> None:
        waiting = self._waiting.get(transaction)
        if waiting:  # parts are written in the order in which they came
            peer, request = waiting.pop(0)
            peer.send(Acknowledged(), request)
            if not waiting:
                del self._waiting[transaction]

    def discard(self, transaction: TransactionId) -> None:
        self._disk.aside(lambda: self._store.discard_parts(transaction))

    def move(self) -> None:
        """Go on putting values into their places, if there are any."""
        if self._is_moving or not self._store.is_moving:
            return
        self._is_moving, self._checks = True, CHECKS_KEPT
        if not self._store.read_only:
            self._disk.aside(self._store.move, self._moved)
        else:  # there is no room, and values can be read where they are
            asyncio.get_running_loop().call_later(NO_ROOM_PAUSE_S, self._moved, True)

    def _moved(self, more: bool) -> None:
        self._is_moving = False
        if more:
            asyncio.get_running_loop().call_later(MOVE_PAUSE_S, self.move)

    def check(self) -> None:
        """Called now and then."""
        if self._checks and not self._store.is_moving:
            self._checks -= 1
            if not self._checks:
                self._store.forget_overlaid()
        self._free()

    def _free(self) -> None:
        if self._store.free_landed(FREED_KEYS):
            asyncio.get_running_loop().call_later(MOVE_PAUSE_S, self._free)
