"""Scans by column as those who ask see them: the next message is asked for while the one before is read, and no more than that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from backend.network.connections import ShardConnections
from backend.network.scan_messages import EndColumns, ScanColumns, ScannedColumns
from dataflow.columns.vector import GaveUp
from dataflow.errors import Condition, Retryable


async def scan_columns(shards: ShardConnections, shard: int, scan: ScanColumns) -> AsyncGenerator[bytes, None]:
    """Record batches of what is scanned; may be `GaveUp`."""
    answer: ScannedColumns = await shards.ask(shard, scan)
    peer = await shards.peer(shard)
    waiting: asyncio.Future[ScannedColumns] | None = None
    try:
        while True:
            waiting = asyncio.ensure_future(peer.ask(ScanColumns(answer.scan))) if answer.scan else None
            if answer.gave_up:
                raise GaveUp(answer.gave_up)
            for batch in answer.batches:
                yield batch
            if waiting is None:
                return
            answer = await waiting
    except ConnectionError as error:
        raise Retryable(Condition.SHARD_UNREACHABLE, shard) from error
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await waiting
        if answer.scan:
            peer.send(EndColumns(answer.scan))
