"""Where the shards are, and a process's connections to them.

A request that may safely be sent twice is sent again when its shard is lost, until
`PATIENCE_S` is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from backend.network.handshake import WrongSecret
from backend.network.messages import AskStatus, Message, ShardStatus, Stop
from backend.network.transport import OTHER_LOOP, Handler, Peer, connect
from controller.registry import Address
from dataflow.errors import Condition, Retryable

PATIENCE_S = 20.0
"""How long a request waits for a shard that is lost: Spark restarts workers within seconds."""
REFUSALS_MAX = 3
"""A secret that is refused so often in a row is the wrong one."""

log = logging.getLogger(__name__)


class ShardConnections:
    """One connection to each shard, made when it is first needed. `_shard_lost` and `_shards_moved` are told."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._addresses: dict[int, Address] = {}
        self._last_known: dict[int, Address] = {}
        self._moved = asyncio.Event()
        self._peers: dict[int, Peer] = {}
        self._connecting: dict[int, asyncio.Lock] = {}
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _shard_lost(self, shard: int) -> None: ...

    def _shards_moved(self) -> None: ...

    def set_addresses(self, addresses: dict[int, Address]) -> None:
        """Where the shards are now, from the registry."""
        if any(self._last_known.get(shard, address) != address for shard, address in addresses.items()):
            self._shards_moved()
        self._last_known |= addresses
        self._loop = asyncio.get_running_loop()
        self._addresses = addresses
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def addresses(self) -> Mapping[int, Address]:
        return self._addresses

    def close(self) -> None:
        self._is_closed = True
        for peer in self._peers.values():
            peer.close()

    def peers(self) -> list[Peer]:
        """The connections that there are."""
        return list(self._peers.values())

    async def peer(self, shard: int) -> Peer:
        """The connection over which the shard is asked."""
        return await self._peer(shard, asyncio.get_running_loop().time() + PATIENCE_S)

    async def _peer(self, shard: int, deadline: float) -> Peer:
        """A connection to the shard; waits for the shard to come (back) if need be."""
        peer = self._peers.get(shard)
        if peer is not None and not peer.lost:
            return peer
        loop = asyncio.get_running_loop()
        if self._loop is not None and loop is not self._loop:
            raise RuntimeError(OTHER_LOOP)
        async with self._connecting.setdefault(shard, asyncio.Lock()):
            delay_s = 0.02
            while True:
                if self._is_closed:
                    raise RuntimeError("the database is closed")
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
                            on_lost=lambda peer: self._shard_lost(shard),
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

    async def check_secret(self) -> None:
        """Raises ValueError if a shard has another secret, so that nobody waits for it in vain."""
        for address in list(self._addresses.values())[:1]:
            refusals = 0
            while refusals < REFUSALS_MAX:
                try:
                    (await connect(address.host, address.port, self._secret)).close()
                    return
                except WrongSecret:  # or it was lost at that moment
                    refusals += 1
                except (OSError, TimeoutError):
                    return  # it is waited for when it is needed
            raise ValueError("the secret is not that of this cluster")

    async def ask(self, shard: int, message: Message) -> Any:
        """The answer to a request that may safely be sent twice."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            peer = await self._peer(shard, deadline)
            try:
                return await peer.ask(message)
            except ConnectionError as error:
                if asyncio.get_running_loop().time() >= deadline:
                    raise Retryable(Condition.SHARD_UNREACHABLE, shard) from error

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
