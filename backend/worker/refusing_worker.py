"""The worker of a shard that cannot be served: it says why to everyone who asks, and touches nothing.

The shard's files are damaged, or the disk is too full even to read them. It is a worker like any other as far as it is
registered, asked for its status and stopped; so nobody waits for a shard that will not come, and what is wrong reaches
clients, the log and /health. Damaged files are served again when somebody has decided what shall become of them: put
them back, or `millrace repair`, and start again.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psutil

from backend.network.messages import Acknowledged, AskStatus, ShardStatus, Stop
from backend.network.transport import Listeners, Peer, failure, listen
from dataflow.errors import CorruptState, MillraceError


class RefusingWorker:
    """`stopped` is set when a peer asked the process to end."""

    def __init__(self, shard: int, error: MillraceError) -> None:
        self.shard = shard
        self.damage = error.arguments[0] if isinstance(error, CorruptState) else ""
        self.stopped = asyncio.Event()
        self._refusal = failure(error)

    async def serve(self, host: str, secret: bytes) -> tuple[Listeners, int]:
        return await listen(host, 0, secret, self._handle)

    def _handle(self, peer: Peer, request: int, message: Any) -> None:
        match message:
            case AskStatus():
                peer.send(self._status(), request)
            case Stop():
                peer.send(Acknowledged(), request)
                self.stopped.set()
            case _ if request:
                peer.send(self._refusal, request)

    def _status(self) -> ShardStatus:
        resident = psutil.Process().memory_info().rss
        return ShardStatus(
            shard=self.shard,
            process=os.getpid(),
            epoch=0,
            transactions=0,
            reads=0,
            open_scans=0,
            stored_bytes=0,
            resident_bytes=resident,
            in_doubt=False,
            catalog_version=0,
            views=0,
            view_bytes=0,
            only_full_views_left=False,
            damage=self.damage,
            read_only=not self.damage,
        )
