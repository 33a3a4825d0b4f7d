"""Who does not know the cluster's secret gets a random number and nothing else, whatever they send."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from backend.network import handshake
from backend.network.handshake import (
    MAGIC,
    NONCE_BYTES,
    PROOF_BYTES,
    UNPROVEN_MAX,
    UNPROVEN_S,
    Handshake,
    WrongSecret,
)
from backend.network.messages import Acknowledged, Get, Values
from backend.network.transport import Peer, connect, encode_frame, listen

SECRET = b"the cluster's secret"
CHALLENGE_BYTES = len(MAGIC) + NONCE_BYTES
ANSWER_BYTES = CHALLENGE_BYTES + PROOF_BYTES

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Listener:
    """A process of the cluster; `handled` are the messages that it took."""

    def __init__(self) -> None:
        self.port = 0
        self.handled: list[Any] = []
        self.ready: list[Peer] = []

    def handle(self, peer: Peer, request: int, message: Any) -> None:
        self.handled.append(message)
        peer.send(Values([]), request)

    async def serves_who_knows(self) -> None:
        peer = await connect("127.0.0.1", self.port, SECRET)
        assert (await peer.ask(Get([b"k"]))).values == []
        peer.close()


def with_listener(test: Callable[[Listener], Awaitable[None]]) -> None:
    """Run `test` as a stranger: nothing that it sends is handled, and those who know the secret are served after it."""

    async def run() -> None:
        listener = Listener()
        server, listener.port = await listen("127.0.0.1", 0, SECRET, listener.handle, on_ready=listener.ready.append)
        try:
            await asyncio.wait_for(test(listener), 30)
            assert not listener.handled
            assert not listener.ready
            await listener.serves_who_knows()
        finally:
            server.close()

    asyncio.run(run())


async def open_to(listener: Listener) -> tuple[Connection, bytes]:
    """A connection and the listener's nonce."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    challenge = await reader.readexactly(CHALLENGE_BYTES)
    assert challenge.startswith(MAGIC)
    return (reader, writer), challenge[len(MAGIC) :]


async def rest(connection: Connection) -> bytes:
    """What else comes until the other side closes."""
    reader, writer = connection
    received = b""
    with contextlib.suppress(ConnectionError):
        received = await reader.read()
    writer.close()
    return received


async def answer(connection: Connection, sent: bytes) -> bytes:
    connection[1].write(sent)
    return await rest(connection)


@contextlib.asynccontextmanager
async def false_listener(serve: Callable[[Connection], Awaitable[None]]) -> AsyncIterator[int]:
    """Somebody who listens where a process of the cluster is believed to be."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve((reader, writer))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_nonces_of_two_connections_crossed_prove_nothing() -> None:
    async def test(listener: Listener) -> None:
        first, first_nonce = await open_to(listener)
        second, second_nonce = await open_to(listener)
        first[1].write(MAGIC + second_nonce)
        second[1].write(MAGIC + first_nonce)
        # Whatever the listener would say now could be handed over to the other connection.
        heard = await asyncio.gather(rest(first), rest(second))
        assert heard == [b"", b""]

    with_listener(test)


def test_a_recorded_proof_cannot_be_replayed() -> None:
    async def test(listener: Listener) -> None:
        genuine = Handshake(SECRET, initiates=True)
        genuine.begin(("127.0.0.1", listener.port))
        first, nonce = await open_to(listener)
        recorded = genuine.receive(bytearray(MAGIC + nonce))
        assert len(recorded) == ANSWER_BYTES
        first[1].close()
        second, _ = await open_to(listener)
        assert await answer(second, recorded) == b""

    with_listener(test)


def test_a_proof_cannot_be_passed_on_to_another_listener() -> None:
    """Whoever has taken the port of a process that is gone gets no further with what its peers send there."""

    async def test(listener: Listener) -> None:
        heard: list[bytes] = []

        async def relay(initiator: Connection) -> None:
            upstream, nonce = await open_to(listener)
            initiator[1].write(MAGIC + nonce)
            heard.append(await answer(upstream, await initiator[0].readexactly(ANSWER_BYTES)))

        async with false_listener(relay) as port:
            with pytest.raises(ConnectionError):
                await connect("127.0.0.1", port, SECRET)
        assert heard == [b""]

    with_listener(test)


def test_an_initiator_is_not_convinced_by_its_own_words() -> None:
    async def test(listener: Listener) -> None:
        async def reflect(initiator: Connection) -> None:
            initiator[1].write(MAGIC + os.urandom(NONCE_BYTES))
            sent = await initiator[0].readexactly(ANSWER_BYTES)
            initiator[1].write(sent[-PROOF_BYTES:] + encode_frame(1, Acknowledged()))
            await initiator[0].read()

        async with false_listener(reflect) as port:
            with pytest.raises(WrongSecret):
                await connect("127.0.0.1", port, SECRET)

    with_listener(test)


def test_a_listener_is_not_convinced_by_its_own_words() -> None:
    async def test(listener: Listener) -> None:
        connection, nonce = await open_to(listener)
        assert await answer(connection, MAGIC + nonce + nonce) == b""

    with_listener(test)


def test_a_proof_with_another_secret_is_not_answered() -> None:
    async def test(listener: Listener) -> None:
        with pytest.raises(WrongSecret):
            await connect("127.0.0.1", listener.port, b"a guess")
        connection, nonce = await open_to(listener)
        own = os.urandom(NONCE_BYTES)
        assert await answer(connection, MAGIC + own + hmac.digest(b"a guess", nonce + own, "sha256")) == b""

    with_listener(test)


@pytest.mark.parametrize("size", [ANSWER_BYTES + 1, 1 << 20], ids=["a byte", "a megabyte"])
def test_more_than_a_proof_closes_the_connection(size: int) -> None:
    async def test(listener: Listener) -> None:
        connection, _ = await open_to(listener)
        assert await answer(connection, (MAGIC + os.urandom(size))[:size]) == b""

    with_listener(test)


@pytest.mark.parametrize("is_slow", [False, True], ids=["silent", "slow"])
def test_who_proves_nothing_is_gone_in_time(is_slow: bool) -> None:
    async def test(listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection, _ = await open_to(listener)

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                for byte in MAGIC + bytes(NONCE_BYTES):
                    connection[1].write(bytes([byte]))
                    await asyncio.sleep(UNPROVEN_S / 8)

        dripping = asyncio.ensure_future(drip()) if is_slow else None
        assert await rest(connection) == b""
        assert UNPROVEN_S / 2 < loop.time() - began < UNPROVEN_S * 4
        if dripping is not None:
            dripping.cancel()

    with_listener(test)


def test_silent_connections_take_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "UNPROVEN_S", 600)

    async def test(listener: Listener) -> None:
        silent = [await open_to(listener) for _ in range(UNPROVEN_MAX + 20)]
        # The oldest have been turned out, and whoever comes still gets in.
        for connection, _ in silent[:20]:
            assert await rest(connection) == b""
        for connection, _ in silent[20:]:
            connection[1].close()

    with_listener(test)


def test_strangers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test(listener: Listener) -> None:
        for _ in range(50):
            connection, _ = await open_to(listener)
            await answer(connection, os.urandom(ANSWER_BYTES))

    with_listener(test)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
