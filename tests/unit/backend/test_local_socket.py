"""Processes of one machine talk through a Unix socket, which proves and refuses as TCP does."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from backend.network.handshake import MAGIC, NONCE_BYTES, Handshake, WrongSecret
from backend.network.local_socket import connected_socket, listening_socket, local_place
from backend.network.messages import Get, Values
from backend.network.transport import Peer, connect, listen

SECRET = b"the cluster's secret"
HOST = "127.0.0.1"


def serving(test: Callable[[int, list[Any]], Awaitable[None]], run: Callable[[Any], None] = asyncio.run) -> None:
    """Run `test` with the port of a listener and what it has handled."""

    async def scenario() -> None:
        handled: list[Any] = []

        def handle(peer: Peer, request: int, message: Any) -> None:
            handled.append(message)
            peer.send(Values([(1, b"x" * 300_000)]), request)

        listeners, port = await listen(HOST, 0, SECRET, handle)
        try:
            await asyncio.wait_for(test(port, handled), 30)
        finally:
            listeners.close()
        assert connected_socket(local_place(HOST, port)) is None

    run(scenario())


def family(peer: Peer) -> int:
    assert peer._transport is not None
    return int(peer._transport.get_extra_info("socket").family)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_messages_go_through_the_unix_socket(run: Callable[[Any], None]) -> None:
    async def test(port: int, handled: list[Any]) -> None:
        peer = await connect(HOST, port, SECRET)
        assert family(peer) == socket.AF_UNIX
        found = await asyncio.gather(*(peer.ask(Get([b"k"])) for _ in range(20)))
        assert len(found) == len(handled) == 20 and len(found[0].values[0][1]) == 300_000
        peer.close()

    serving(test, run)


def test_who_does_not_know_the_secret_is_refused_on_the_unix_socket() -> None:
    async def test(port: int, handled: list[Any]) -> None:
        with pytest.raises(WrongSecret):
            await connect(HOST, port, b"a guess")
        assert not handled

    serving(test)


@pytest.mark.parametrize("is_unix", [True, False])
def test_a_proof_for_one_socket_is_none_for_the_other(is_unix: bool) -> None:
    async def test(port: int, handled: list[Any]) -> None:
        place = local_place(HOST, port)
        if is_unix:
            reader, writer = await asyncio.open_unix_connection(sock=connected_socket(place))
        else:
            reader, writer = await asyncio.open_connection(HOST, port)
        genuine = Handshake(SECRET, initiates=True)
        genuine.begin((HOST, port) if is_unix else place)
        writer.write(genuine.receive(bytearray(await reader.readexactly(len(MAGIC) + NONCE_BYTES))))
        assert await reader.read() == b"" and not handled
        writer.close()

    serving(test)


def test_the_socket_of_another_user_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(port: int, handled: list[Any]) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        peer = await connect(HOST, port, SECRET)
        assert family(peer) == socket.AF_INET and (await peer.ask(Get([b"k"]))).values
        peer.close()
        monkeypatch.undo()

    serving(test)


def test_a_name_that_somebody_has_is_left_to_him() -> None:
    place = local_place(HOST, 1)
    first = listening_socket(place)
    assert first is not None and listening_socket(place) is None
    first.close()
