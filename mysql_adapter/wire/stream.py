"""One client's socket as packets: framing, TLS, compression, and backpressure both ways.

Memory is bounded: reading pauses while packets wait to be taken, and `drain` waits while
the client does not read. What packets mean, and when to read or write them, is the owner's
business; the stream tells it when the socket is there and when it is gone.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Literal, Protocol, cast

from mysql_adapter.wire.compression import CompressionLayer
from mysql_adapter.wire.framing import Disconnected, Framer, Packet, SequenceBroken, frame, frames_of
from mysql_adapter.wire.packets import MalformedPacket
from mysql_adapter.wire.tls import TlsLayer

LOGIN_PACKET_BYTES_MAX = 128 * 1024
READ_AHEAD_BYTES_MAX = 256 * 1024
WRITE_CHUNK_BYTES = 64 * 1024


class Later(Enum):
    """What a shortcut says that will answer by `PacketStream.answer_later`."""

    LATER = "later"


LATER = Later.LATER
AtOnce = Callable[[bytes], bytes | Literal[Later.LATER] | None]


class Owner(Protocol):
    def connected(self) -> None: ...

    def lost(self) -> None: ...


class PacketStream(asyncio.Protocol):
    """Starts with the small packets of a login; `allow` lets larger ones in."""

    def __init__(self, owner: Owner, write_timeout_s: float) -> None:
        self.capabilities = 0
        self.deadline = 0.0
        """When the server's sweep may end the connection; 0 for never."""
        self.shortcut: AtOnce | None = None
        """Set while the next command is waited for: what may answer it as it arrives."""
        self.idle_timeout_s = 0.0
        self.write_timeout_s = write_timeout_s
        self.closed = False
        self.received_bytes = 0
        self.sent_bytes = 0
        self.host = ""
        self.port = 0
        self.tls: TlsLayer | None = None
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._framer = Framer(LOGIN_PACKET_BYTES_MAX)
        self._may_skip = False
        self._transport: asyncio.Transport | None = None
        self._compression: CompressionLayer | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._sequence = 0
        self._arrival: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._asked: bytes | None = None
        """The command that will be answered later."""
        self._held: list[bytes] = []
        """What has arrived after it."""
        self.ends_with_answer = False
        """Close it once the command is answered that will be later."""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio.Transport in all but name.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.host, self.port = (peer[0], peer[1]) if isinstance(peer, tuple) else ("localhost", 0)
        self._owner.connected()

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self.received_bytes += len(data)
        try:
            if self.tls is not None:
                data = self.tls.receive(data)
                if answer := self.tls.pending():
                    self._write(answer)
            if self._compression is not None:
                data = self._compression.receive(data)
        except (ssl.SSLError, ValueError):
            self.abort()
            return
        if self._asked is not None:
            self._held.append(data)
            if sum(map(len, self._held)) > READ_AHEAD_BYTES_MAX:
                self._pause_reading()
            return
        if self.shortcut is not None and self._answer_at_once(self.shortcut, data):
            return
        self._framer.feed(data)
        if self._arrival is not None:
            if not self._arrival.done():
                self._arrival.set_result(None)
        elif self._framer.buffered_bytes > READ_AHEAD_BYTES_MAX:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._reading_paused = True

    @property
    def is_asked(self) -> bool:
        """A command waits for its answer that no task is running."""
        return self._asked is not None

    def answer_later(self, answer: bytes | None) -> None:
        """The answer to the command that LATER was said to; None if it has to be executed after all."""
        asked, self._asked = self._asked, None
        held, self._held = self._held, []
        if self.closed:
            return
        assert asked is not None and self._arrival is not None
        if answer is not None:
            self._answer(answer)
            if self.ends_with_answer:
                self.close()
                return
        else:
            held.insert(0, asked)
        if held:
            for data in held:
                self._framer.feed(data)
            if not self._arrival.done():
                self._arrival.set_result(None)

    def _answer_at_once(self, shortcut: AtOnce, data: bytes) -> bool:
        arrival = self._arrival
        if arrival is None or arrival.done() or self._writable is not None or not self._framer.is_empty:
            return False
        answer = shortcut(data)
        if answer is None:
            return False
        if answer is LATER:
            self.deadline = 0.0
            self._asked = data
        else:
            self._answer(answer)
        return True

    def _answer(self, answer: bytes) -> None:
        self.deadline = self._loop.time() + self.idle_timeout_s
        if not answer:
            return
        if self._compression is None and self.tls is None:
            self._write(answer)
        else:
            self._out.append(answer)
            self.flush()

    def connection_lost(self, _: Exception | None) -> None:
        self.closed = True
        for waiter in (self._arrival, self._writable):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._owner.lost()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Reading

    @property
    def buffered_bytes(self) -> int:
        return self._framer.buffered_bytes

    def allow(self, payload_bytes_max: int) -> None:
        """After the login: packets of this size, and larger ones reported instead of refused."""
        self._framer.payload_bytes_max = payload_bytes_max
        self._may_skip = True

    def take(self) -> Packet | None:
        """The next packet if it is there already."""
        packet = self._framer.take()
        if packet is not None:
            self._sequence = (packet.last + 1) & 0xFF
        return packet

    async def next_packet(self) -> Packet:
        while True:
            packet = self.take()
            if packet is not None:
                return packet
            if self.closed:
                raise Disconnected
            if self._framer.is_skipping and not self._may_skip:
                raise MalformedPacket("packet too large for a login")
            if self._reading_paused:
                assert self._transport is not None
                self._transport.resume_reading()
                self._reading_paused = False
            self._arrival = self._loop.create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None

    async def receive(self) -> bytes:
        """The client's next packet within an exchange."""
        self.flush()
        expected = self._sequence
        packet = await self.next_packet()
        if packet.payload is None:
            raise MalformedPacket("packet too large")
        if packet.first != expected and not self.is_compressed:
            raise SequenceBroken
        return packet.payload

    # Layers

    @property
    def secure(self) -> bool:
        return self.tls is not None

    @property
    def is_compressed(self) -> bool:
        """Then the order is that of the compressed frames, and packets may have any number."""
        return self._compression is not None

    def start_tls(self, context: ssl.SSLContext) -> None:
        """From here on everything is TLS, also what has arrived and not been taken."""
        self.tls = TlsLayer(context)
        self.data_received(self._framer.take_rest())

    def start_compression(self) -> None:
        self.flush()
        self._compression = CompressionLayer()
        if rest := self._framer.take_rest():
            self._framer.feed(self._compression.receive(rest))

    # Writing

    def send(self, payload: bytes) -> None:
        """Queue one packet; `flush` or `drain` puts it on the wire."""
        self._out.append(frame(payload, self._sequence))
        self._sequence = (self._sequence + frames_of(len(payload))) & 0xFF
        self._out_bytes += len(payload)

    def send_framed(self, data: bytes, next_sequence: int) -> None:
        """Queue packets already numbered from `next_packet_sequence`."""
        self._out.append(data)
        self._out_bytes += len(data)
        self._sequence = next_sequence

    @property
    def next_packet_sequence(self) -> int:
        return self._sequence

    @property
    def wants_drain(self) -> bool:
        return self._out_bytes > WRITE_CHUNK_BYTES

    @property
    def is_congested(self) -> bool:
        """The client reads more slowly than we write."""
        return self._writable is not None

    @property
    def unsent_bytes(self) -> int:
        assert self._transport is not None
        return self._out_bytes + self._transport.get_write_buffer_size()

    def flush(self) -> None:
        if self._out and not self.closed:
            data = b"".join(self._out)
            self._out.clear()
            self._out_bytes = 0
            if self._compression is not None:
                data = self._compression.send(data)
            if self.tls is not None:
                data = self.tls.send(data)
            self._write(data)

    async def drain(self, patience_s: float | None = None) -> bool:
        """Flush, and wait while the client is slow to read; False if it still is after `patience_s`."""
        self.flush()
        if self._writable is not None:
            # A client that does not read for too long is ended by the sweep.
            self.deadline = self._loop.time() + self.write_timeout_s
            try:
                await asyncio.wait((self._writable,), timeout=patience_s)
            finally:
                self.deadline = 0.0
        if self.closed:
            raise Disconnected
        return self._writable is None

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self.sent_bytes += len(data)
        self._transport.write(data)

    # The end

    def close(self) -> None:
        """End the connection once what is queued has been written."""
        if not self.closed:
            self.flush()
            self.closed = True
            assert self._transport is not None
            self._transport.close()
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def abort(self) -> None:
        """End the connection now."""
        self.closed = True
        assert self._transport is not None
        self._transport.abort()

    def release(self) -> None:
        """The connection is over: what was read ahead is not wanted any more."""
        self.shortcut = None
        self._held.clear()
        self._framer = Framer(0)
        self._out.clear()
