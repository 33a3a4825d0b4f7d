"""Messages get through, whole and typed; what is no message of ours ends the connection."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from backend.network.messages import Acknowledged, Allocate, Allocated, Define, Get, Message, Values
from backend.network.transport import FRAME_BYTES_MAX, SLICE_S, Peer, connect, encode_frame, failure, listen
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement, MillraceError, Unsupported
from dataflow.values.result_limits import ResultSettings

SECRET = b"the cluster's secret"


def answer(peer: Peer, request: int, message: Any) -> None:
    match message:
        case Get(keys):
            peer.send(Values([(1, key) for key in keys]), request)
        case Allocate(counter, _, _) if counter == b"bad":
            peer.send(failure(InvalidStatement(Condition.DUPLICATE_ENTRY, "a", "t.PRIMARY")), request)
        case Allocate():
            peer.send(failure(Unsupported("counting")), request)


def with_server(test: Callable[[int], Awaitable[None]]) -> None:
    async def run() -> None:
        server, port = await listen("127.0.0.1", 0, SECRET, answer)
        try:
            await asyncio.wait_for(test(port), 30)
        finally:
            server.close()

    asyncio.run(run())


def test_many_requests_at_once_get_their_own_answers() -> None:
    async def test(port: int) -> None:
        peer = await connect("127.0.0.1", port, SECRET)
        keys = [os.urandom(size) for size in (0, 1, 10, 100_000, 3_000_000)] * 5
        answers = await asyncio.gather(*(peer.ask(Get([key])) for key in keys))
        assert [found.values for found in answers] == [[(1, key)] for key in keys]
        peer.close()

    with_server(test)


def test_failures_are_raised_on_the_other_side_as_what_they_are() -> None:
    async def test(port: int) -> None:
        peer = await connect("127.0.0.1", port, SECRET)
        with pytest.raises(InvalidStatement) as raised:
            await peer.ask(Allocate(b"bad", 1, 0))
        assert raised.value.condition is Condition.DUPLICATE_ENTRY
        assert str(raised.value) == "Duplicate entry 'a' for key 't.PRIMARY'"
        with pytest.raises(Unsupported):
            await peer.ask(Allocate(b"other", 1, 0))
        peer.close()

    with_server(test)


async def closes(port: int, *pieces: bytes) -> bytes:
    """Send bytes and return what came back until the server closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        received = await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()
    return received


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n" * 4, os.urandom(200), b"MRC2" + bytes(32) + bytes(32), b"\xff" * 1000],
    ids=["http", "random", "no proof", "ones"],
)
def test_strangers_are_disconnected_before_any_message_is_read(sent: bytes) -> None:
    async def test(port: int) -> None:
        received = await closes(port, sent)
        assert len(received) <= 4 + 32
        peer = await connect("127.0.0.1", port, SECRET)
        assert (await peer.ask(Get([b"k"]))).values == [(1, b"k")]
        peer.close()

    with_server(test)


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<IHQ", FRAME_BYTES_MAX + 1, 1, 1),
        struct.pack("<IHQ", 1, 9999, 1) + b"\xc0",
        struct.pack("<IHQ", 3, 2, 1) + b"\xc1\xc1\xc1",
        encode_frame(1, Allocated(1))[:-1] + b"\xa1",
    ],
    ids=["too long", "unknown number", "not msgpack", "wrong type"],
)
def test_malformed_frames_end_the_connection_and_only_that(frame: bytes) -> None:
    async def test(port: int) -> None:
        peer = await connect("127.0.0.1", port, SECRET)
        assert peer._transport is not None
        peer._transport.write(frame)
        with pytest.raises(ConnectionError):
            await peer.ask(Get([b"k"]))
        again = await connect("127.0.0.1", port, SECRET)
        assert (await again.ask(Get([b"k"]))).values == [(1, b"k")]
        again.close()

    with_server(test)


def test_who_asks_with_a_value_of_the_wrong_type_is_told_and_may_go_on() -> None:
    async def test(port: int) -> None:
        peer = await connect("127.0.0.1", port, SECRET)
        waiting = asyncio.ensure_future(peer.ask(Get([b"k"])))
        with pytest.raises(MillraceError, match="Expected"):
            await peer.ask(Allocate(b"c", 1.5, 0))  # type: ignore[arg-type]
        assert (await waiting).values == (await peer.ask(Get([b"k"]))).values == [(1, b"k")]
        peer.close()

    with_server(test)


def test_a_connection_is_not_used_from_another_event_loop() -> None:
    async def test(port: int) -> None:
        peer = await connect("127.0.0.1", port, SECRET)
        with pytest.raises(RuntimeError, match="event loop"):
            await asyncio.to_thread(lambda: asyncio.run(peer.ask(Get([b"k"]))))
        peer.close()

    with_server(test)


def test_frames_survive_any_fragmentation() -> None:
    received: list[Message] = []

    async def run() -> None:
        peer = Peer(SECRET, lambda _peer, _request, message: received.append(message))
        peer._proven = True
        stream = encode_frame(0, Get([b"a" * 300])) + encode_frame(0, Acknowledged()) + encode_frame(0, Get([b"b"]))
        for position in range(len(stream)):
            peer.data_received(stream[position : position + 1])

    asyncio.run(run())
    assert received == [Get([b"a" * 300]), Acknowledged(), Get([b"b"])]


def test_frames_that_take_long_are_handled_in_turns_and_in_order() -> None:
    async def run() -> None:
        seen: list[bytes] = []
        turns = 0

        def slow(peer: Peer, request: int, message: Any) -> None:
            until_s = time.perf_counter() + SLICE_S / 2
            while time.perf_counter() < until_s:
                pass
            seen.append(message.keys[0])

        def turn() -> None:
            nonlocal turns
            turns += 1
            if len(seen) < len(sent):
                loop.call_soon(turn)

        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        server, port = await listen("127.0.0.1", 0, SECRET, slow, on_lost=lambda peer: lost.set_result(None))
        peer = await connect("127.0.0.1", port, SECRET)
        sent = [number.to_bytes(2, "big") for number in range(60)]
        for key in sent:
            peer.send(Get([key]))
        turn()
        while len(seen) < 3:
            await asyncio.sleep(0)
        peer.close()
        await asyncio.wait_for(lost, 30)
        assert seen == sent, "what came before the end is handled"
        assert turns > 5
        server.close()

    asyncio.run(run())


def test_a_definition_has_all_settings_of_its_session() -> None:
    settings = Settings(
        frozenset({"ANSI_QUOTES", "PIPES_AS_CONCAT"}), "latin1_bin", False, "+03:00", "owner", results=ResultSettings(division_digits=9),
        client_codec="koi8-r", server_collation="utf8mb4_bin",
    )  # fmt: skip
    received = []

    def remember(peer: Peer, request: int, message: Any) -> None:
        received.append(message)
        peer.send(Acknowledged(), request)

    async def run() -> None:
        server, port = await listen("127.0.0.1", 0, SECRET, remember)
        try:
            peer = await connect("127.0.0.1", port, SECRET)
            await peer.ask(Define(["CREATE DATABASE d"], None, settings))
        finally:
            server.close()

    asyncio.run(run())
    assert received == [Define(["CREATE DATABASE d"], None, settings)]
