"""A large commit, sent to its shard in parts that each take a worker a few milliseconds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from backend.clustering.store import CommitPart, Owner
from backend.network.lock_messages import RowLocked
from backend.network.messages import Acknowledged
from backend.network.transport import Peer
from dataflow.commit.epoch_messages import NEW, Outcome, Puts, StagePart, TransactionId

LARGE_WRITES = 2_000
"""A commit with more than these is sent in parts, if something has to be checked of them."""
LARGE_KEYS = 20_000
LARGE_BYTES = 8 << 20
PART_KEYS = 250
PART_BYTES = 64 << 10
PARTS_UNDER_WAY = 2

Each = TypeVar("Each")


def is_large(part: CommitPart) -> bool:
    checked = len(part.writes) + len(part.checks) + sum(len(puts.keys) for puts in part.puts if puts.expected != NEW)
    if checked > LARGE_WRITES or sum(len(puts.keys) for puts in part.puts) > LARGE_KEYS:
        return True
    written = sum(len(key) + len(value or b"") for key, _, value in part.writes)
    return written + sum(sum(map(len, puts.keys)) + sum(map(len, puts.values)) for puts in part.puts) > LARGE_BYTES


async def send_parts(
    peer: Peer, transaction: TransactionId, owner: Owner | None, part: CommitPart
) -> int | Outcome | RowLocked:
    """How many parts it took, or why the shard refuses it."""
    under_way: deque[asyncio.Future[Acknowledged | Outcome | RowLocked]] = deque()
    count = 0
    try:
        for piece in pieces(part):
            under_way.append(
                asyncio.ensure_future(
                    peer.ask(StagePart(transaction, count, piece.writes, piece.checks, owner, tuple(piece.puts)))
                )
            )
            count += 1
            while len(under_way) > PARTS_UNDER_WAY:
                answer = await under_way.popleft()
                if not isinstance(answer, Acknowledged):
                    return answer
        while under_way:
            answer = await under_way.popleft()
            if not isinstance(answer, Acknowledged):
                return answer
        return count
    finally:
        for each in under_way:
            each.cancel()


def pieces(part: CommitPart) -> Iterator[CommitPart]:
    """The same as `part`, little by little."""
    for checks in _chunks(part.checks, (len(key) for key, _ in part.checks)):
        yield CommitPart([], checks)
    for writes in _chunks(part.writes, (len(key) + len(value or b"") for key, _, value in part.writes)):
        yield CommitPart(writes, [])
    for puts in part.puts:
        keys, values = iter(puts.keys), iter(puts.values)
        for sizes in _chunks(puts.values, map(len, puts.values)):
            some = Puts(list(islice(keys, len(sizes))), list(islice(values, len(sizes))), puts.expected, puts.start)
            yield CommitPart([], [], [some])


def _chunks(items: list[Each], sizes: Iterable[int]) -> Iterator[list[Each]]:
    chunk: list[Each] = []
    taken = 0
    for item, size in zip(items, sizes):
        chunk.append(item)
        taken += size
        if taken >= PART_BYTES or len(chunk) >= PART_KEYS:
            yield chunk
            chunk, taken = [], 0
    if chunk:
        yield chunk
