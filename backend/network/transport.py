"""Typed messages between the processes of one cluster, over TCP, or over a Unix socket on one machine (`backend/network/local_socket.py`).

A frame is its length, the message's number, a request id and the msgpack body. Frames of a
connection keep their order. Both ends prove that they know the cluster's secret before any
message is looked at (`backend/network/handshake.py`), and no frame may be longer than `FRAME_BYTES_MAX`.
Nothing is unpickled, ever.

A request carries an id ≠ 0 and its answer the same id; messages with id 0 expect no answer.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, cast

import msgspec

from backend.network.handshake import Handshake, Strangers, WrongSecret
from backend.network.local_socket import Place, connected_socket, listening_socket, local_place
from backend.network.messages import MESSAGES, Failed, Message
from dataflow import errors
from dataflow.errors import Condition, InvalidStatement, MillraceError

FRAME_BYTES_MAX = 256 * 1024 * 1024
SLICE_S = 0.002
"""Frames that take longer than this together are handled in several turns of the event loop."""
OTHER_LOOP = "a connection to the cluster belongs to the event loop that it was made on"
_HEADER = struct.Struct("<IHQ")
_NUMBERS = {message: number for number, message in enumerate(MESSAGES)}
_DECODERS: list[msgspec.msgpack.Decoder[Any]] = [msgspec.msgpack.Decoder(message) for message in MESSAGES]
_ENCODER = msgspec.msgpack.Encoder()

Handler = Callable[["Peer", int, Any], None]
"""handler(peer, request id, message)"""

log = logging.getLogger(__name__)


def encode_frame(request: int, message: Message) -> bytes:
    body = _ENCODER.encode(message)
    if len(body) > FRAME_BYTES_MAX:
        raise InvalidStatement(Condition.TRANSACTION_TOO_LARGE)
    return _HEADER.pack(len(body), _NUMBERS[type(message)], request) + body


def failure(error: BaseException) -> Failed:
    """The answer that makes the other side raise the same error."""
    if isinstance(error, MillraceError):
        return Failed(type(error).__name__, error.condition.name, error.arguments)
    return Failed("MillraceError", Condition.UNKNOWN_ERROR.name, (f"{type(error).__name__}: {error}",))


def raise_failure(failed: Failed) -> None:
    condition = Condition[failed.condition]
    kind = getattr(errors, failed.kind, MillraceError)
    error = kind.__new__(kind)
    MillraceError.__init__(error, condition, *failed.arguments)
    raise error


class Peer(asyncio.Protocol):
    """One end of a connection, after the proof a stream of messages both ways.

    A listener's peer is among its `strangers` until it is proven. `on_ready` is called once both
    sides are, `on_lost` once when it is over.
    """

    def __init__(
        self,
        secret: bytes,
        handler: Handler,
        *,
        strangers: Strangers | None = None,
        on_ready: Callable[[Peer], None] | None = None,
        on_lost: Callable[[Peer], None] | None = None,
        place: Place | None = None,
    ) -> None:
        """`place` is that of a Unix socket."""
        self._place = place
        self._handshake = Handshake(secret, initiates=strangers is None)
        self._strangers = strangers
        self._handler = handler
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._proven = False
        self._buffer = bytearray()
        self._goes_on = False
        """Whether what has come is handled in the next turn of the event loop."""
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._later: dict[int, Callable[[Any], None]] = {}
        # Our requests and theirs share the connection: who listens takes even ids, the other odd ones.
        self._next_request = 1 if strangers is None else 2
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self.lost = False

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._transport.set_write_buffer_limits(high=FRAME_BYTES_MAX)
        place = self._place or self._transport.get_extra_info("peername" if self._strangers is None else "sockname")
        if place is None:  # it has gone already
            self._transport.abort()
            return
        if self._strangers is not None:
            self._strangers.enter(self)
        self._transport.write(self._handshake.begin(place))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._goes_on:
            self._receive()

    def _receive(self, until_s: float | None = None) -> None:
        """Handle what has come, or what can be handled until then."""
        self._goes_on = False
        try:
            if self._proven or self._prove():
                self._read_frames(perf_counter() + SLICE_S if until_s is None else until_s)
        except WrongSecret as error:
            self._refuse(error)
        except (msgspec.DecodeError, IndexError, ValueError) as error:
            if self._proven:
                log.warning("closing a connection after a malformed message: %s", error)
                self.close()
            else:
                self._refuse(ConnectionAbortedError(str(error)))

    def connection_lost(self, exception: Exception | None) -> None:
        if self._goes_on:
            self._receive(inf)
        self.lost = True
        error = ConnectionResetError("connection lost")
        if self._strangers is not None:
            self._strangers.leave(self)
        self._fail(WrongSecret("our proof was not taken") if self._handshake.awaits_verdict else error)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()
        later, self._later = self._later, {}
        for then in later.values():
            then(None)
        if self._proven and self._on_lost is not None:
            self._on_lost(self)
        self._transport = None  # which refers to this one

    # --- proof of the secret

    def _prove(self) -> bool:
        answer = self._handshake.receive(self._buffer)
        if answer:
            assert self._transport is not None
            self._transport.write(answer)
        if not self._handshake.proven:
            return False
        self._proven = True
        if self._strangers is not None:
            self._strangers.leave(self)
        self._ready.set_result(None)
        if self._on_ready is not None:
            self._on_ready(self)
        return True

    def _refuse(self, error: ConnectionError) -> None:
        self._buffer.clear()
        if self._strangers is not None:
            self._strangers.report(str(error))
        self._fail(error)
        self.close()

    def _fail(self, error: ConnectionError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # nobody need be waiting for it

    # --- frames

    def _read_frames(self, until_s: float) -> None:
        buffer = self._buffer
        position, end = 0, len(buffer)
        while end - position >= _HEADER.size:
            length, number, request = _HEADER.unpack_from(buffer, position)
            if length > FRAME_BYTES_MAX:
                raise ValueError(f"a frame of {length} bytes")
            start = position + _HEADER.size
            if end - start < length:
                break
            position = start + length
            later = self._later.pop(request, None)
            if later is not None:
                with memoryview(buffer) as view:
                    answer = _DECODERS[number].decode(view[start:position])
                later(answer)
                continue
            future = self._waiting.pop(request, None) if request else None
            try:
                with memoryview(buffer) as view:
                    message = _DECODERS[number].decode(view[start:position])
            except msgspec.ValidationError as error:
                if not request:
                    raise
                # Who asked learns that it would be in vain to send the same once more.
                message = failure(error)
                if future is None:
                    self.send(message, request)
                    continue
            if future is None:
                self._handler(self, request, message)
            elif not future.done():
                future.set_result(message)
            if perf_counter() > until_s and end > position:
                self._goes_on = True
                self._loop.call_soon(self._resume)
                break
        if position:
            del buffer[:position]

    def _resume(self) -> None:
        if self._goes_on:
            self._receive()

    async def ready(self) -> None:
        """Until both sides are proven; raises ConnectionError if that fails."""
        await self._ready

    def send(self, message: Message, request: int = 0) -> None:
        """Send without waiting; silently nothing once the connection is lost.

        What is sent in one turn of the event loop leaves in one write.
        """
        if self._transport is None or self.lost:
            return
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(encode_frame(request, message))

    def send_now(self, message: Message, request: int) -> None:
        """As `send`, at once unless something is to leave before it: for what is a turn's worth by itself."""
        if self._outgoing or self._transport is None or self.lost:
            self.send(message, request)
        else:
            self._transport.write(encode_frame(request, message))

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if self._transport is not None and not self.lost:
            self._transport.write(outgoing[0] if len(outgoing) == 1 else b"".join(outgoing))

    def ask_later(self, message: Message, then: Callable[[Any], None]) -> None:
        """Send a request; `then` is called with its answer, whatever that is, or None if the connection is lost."""
        if self._transport is None or self.lost:
            then(None)
            return
        request = self._next_request
        self._next_request += 2
        self._later[request] = then
        self.send_now(message, request)

    async def ask(self, message: Message) -> Any:
        """Send a request and wait for its answer; raises what the other side failed with."""
        if self.lost:
            raise ConnectionResetError("connection lost")
        request = self._next_request
        self._next_request += 2
        loop = self._loop
        if asyncio.get_running_loop() is not loop:
            raise RuntimeError(OTHER_LOOP)
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[request] = future
        try:
            self.send(message, request)
            answer = await future
        finally:
            self._waiting.pop(request, None)
        if type(answer) is Failed:
            raise_failure(answer)
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


peer_class = Peer
"""What connections are made of."""


async def connect(
    host: str,
    port: int,
    secret: bytes,
    handler: Handler | None = None,
    *,
    on_lost: Callable[[Peer], None] | None = None,
    timeout_s: float = 5.0,
) -> Peer:
    """A proven connection to a process of the cluster; raises OSError if it can't be had."""

    def ignore(peer: Peer, request: int, message: Any) -> None:
        log.debug("unexpected message %r", message)

    def made(place: Place | None = None) -> Peer:
        return peer_class(secret, handler or ignore, on_lost=on_lost, place=place)

    async def open_() -> Peer:
        loop = asyncio.get_running_loop()
        place = local_place(host, port)
        if (local := connected_socket(place)) is not None:
            _, peer = await loop.create_unix_connection(partial(made, place), sock=local)
        else:
            _, peer = await loop.create_connection(made, host, port)
        await peer.ready()
        return peer

    return await asyncio.wait_for(open_(), timeout_s)


class Listeners:
    """What `listen` has opened."""

    def __init__(self, *servers: asyncio.Server) -> None:
        self._servers = servers

    def close(self) -> None:
        for server in self._servers:
            server.close()


async def listen(
    host: str,
    port: int,
    secret: bytes,
    handler: Handler,
    *,
    on_ready: Callable[[Peer], None] | None = None,
    on_lost: Callable[[Peer], None] | None = None,
) -> tuple[Listeners, int]:
    """Serve on host:port (0: any free port), and for this machine on a Unix socket; returns what to close, and the port."""
    loop = asyncio.get_running_loop()
    strangers = Strangers()

    def made(place: Place | None = None) -> Peer:
        return peer_class(secret, handler, strangers=strangers, on_ready=on_ready, on_lost=on_lost, place=place)

    server = await loop.create_server(made, host, port, backlog=1024)
    port = int(server.sockets[0].getsockname()[1])
    place = local_place(host, port)
    if (local := listening_socket(place)) is None:
        return Listeners(server), port
    return Listeners(server, await loop.create_unix_server(partial(made, place), sock=local)), port


def answer_with(
    coroutine: Awaitable[Message], peer: Peer, request: int, tasks: set[asyncio.Task[None]]
) -> None:
    """Run a request that takes time and answer it, or its failure, when it is done."""

    async def run() -> None:
        try:
            answer = await coroutine
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, MillraceError):
                log.exception("a request failed")
            answer = failure(error)
        peer.send(answer, request)

    task = asyncio.ensure_future(run())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
