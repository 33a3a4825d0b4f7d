"""One client's socket: bytes to packets and back, login, then commands until it leaves.

Invariants:
- Nothing a client sends reaches `Commands` before `Authenticator.authenticate` has returned.
- Packets are handled strictly one after the other, in a task of the connection's own, so a
  connection that waits never holds up another.
- Memory per connection is bounded: reading pauses while packets wait to be handled, and
  handling waits while the client does not read (`drain`).

What commands mean is in `commands`; this module knows only when they come and end.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, cast

from mysql_mimic.charset import CharacterSet
from mysql_mimic.packets import make_handshake_v10

from dataflow.errors import Condition, MillraceError
from mysql_adapter import packets
from mysql_adapter.authentication import SHA2, AccessDenied, Account, is_loopback, make_nonce
from mysql_adapter.charsets import collation_by_id
from mysql_adapter.commands import Commands
from mysql_adapter.compression import CompressionLayer
from mysql_adapter.framing import Disconnected, Framer, Packet, SequenceBroken, frame, frames_of
from mysql_adapter.packets import CAN, MalformedPacket, TlsRequest
from mysql_adapter.session import Session
from mysql_adapter.tls import TlsLayer
from mysql_adapter.variables import VERSION

if TYPE_CHECKING:
    from mysql_adapter.server import Server

log = logging.getLogger(__name__)

LOGIN_PACKET_BYTES_MAX = 128 * 1024
READ_AHEAD_BYTES_MAX = 256 * 1024
WRITE_CHUNK_BYTES = 64 * 1024
PIPELINED_MAX = 16
"""Commands of one connection that are handled before others get their turn."""

OFFERED = int(
    CAN.CLIENT_LONG_PASSWORD
    | CAN.CLIENT_FOUND_ROWS
    | CAN.CLIENT_LONG_FLAG
    | CAN.CLIENT_CONNECT_WITH_DB
    | CAN.CLIENT_NO_SCHEMA
    | CAN.CLIENT_COMPRESS
    | CAN.CLIENT_ODBC
    | CAN.CLIENT_IGNORE_SPACE
    | CAN.CLIENT_PROTOCOL_41
    | CAN.CLIENT_INTERACTIVE
    | CAN.CLIENT_IGNORE_SIGPIPE
    | CAN.CLIENT_TRANSACTIONS
    | CAN.CLIENT_RESERVED
    | CAN.CLIENT_SECURE_CONNECTION
    | CAN.CLIENT_MULTI_STATEMENTS
    | CAN.CLIENT_MULTI_RESULTS
    | CAN.CLIENT_PS_MULTI_RESULTS
    | CAN.CLIENT_PLUGIN_AUTH
    | CAN.CLIENT_CONNECT_ATTRS
    | CAN.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
    | CAN.CLIENT_DEPRECATE_EOF
    | CAN.CLIENT_QUERY_ATTRIBUTES
)


class Connection(asyncio.Protocol):
    def __init__(self, server: Server, connection_id: int) -> None:
        self.server = server
        self.id = connection_id
        self.capabilities = 0
        self.host = ""
        self.account: Account | None = None
        self.session: Session | None = None
        self.deadline = 0.0
        """When the server's sweep may end an idle or unfinished connection; 0 while a command runs."""
        self._offered = OFFERED | (int(CAN.CLIENT_SSL) if server.tls else 0)
        self._loop = asyncio.get_running_loop()
        self._framer = Framer(LOGIN_PACKET_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._tls: TlsLayer | None = None
        self._compression: CompressionLayer | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._sequence = 0
        self._arrival: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._kill_query = False
        self._in_command = False
        self._ends_after_command = False
        self._user_name = ""
        self._port = 0
        self._nonce = make_nonce()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio.Transport in all but name.
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.host, self._port = (peer[0], peer[1]) if isinstance(peer, tuple) else ("localhost", 0)
        if not self.server.admit(self):
            transport.write(frame(packets.early_error(Condition.TOO_MANY_CONNECTIONS), 0))
            transport.close()
            self._closed = True
            return
        self.deadline = self._loop.time() + self.server.limits.login_timeout_s
        self._task = self._loop.create_task(self._run())

    def data_received(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            if self._tls is not None:
                data = self._tls.receive(data)
                if answer := self._tls.pending():
                    self._write_raw(answer)
            if self._compression is not None:
                data = self._compression.receive(data)
        except (ssl.SSLError, ValueError):
            self.abort()
            return
        self._framer.feed(data)
        if self._arrival is not None:
            if not self._arrival.done():
                self._arrival.set_result(None)
        elif self._framer.buffered_bytes > READ_AHEAD_BYTES_MAX and not self._reading_paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._reading_paused = True

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, _: Exception | None) -> None:
        self._closed = True
        for waiter in (self._arrival, self._writable):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if self._task is not None:
            self._task.cancel()
        else:
            self.server.dismiss(self)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # What commands and authentication use

    @property
    def host_name(self) -> str:
        """Where the client is, as MySQL names it in accounts and messages."""
        return "localhost" if is_loopback(self.host) else self.host

    @property
    def peer(self) -> str:
        return f"{self.host_name}:{self._port}"

    @property
    def is_waiting(self) -> bool:
        """No command is running."""
        return not self._in_command

    @property
    def secure(self) -> bool:
        return self._tls is not None

    @property
    def tls(self) -> TlsLayer | None:
        return self._tls

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

    def flush(self) -> None:
        if self._out and not self._closed:
            data = b"".join(self._out)
            self._out.clear()
            self._out_bytes = 0
            if self._compression is not None:
                data = self._compression.send(data)
            if self._tls is not None:
                data = self._tls.send(data)
            self._write_raw(data)

    async def drain(self) -> None:
        """Flush, and wait while the client is slow to read."""
        self.flush()
        if self._writable is not None:
            # A client that does not read for too long is ended by the sweep.
            self.deadline = self._loop.time() + self.server.limits.write_timeout_s
            await self._writable
            self.deadline = 0.0
        if self._closed:
            raise Disconnected

    async def receive(self) -> bytes:
        """The client's next packet within an exchange."""
        self.flush()
        packet = await self._next_packet()
        if packet.payload is None:
            raise MalformedPacket("packet too large")
        if packet.first != self._sequence:
            raise SequenceBroken
        self._sequence = (packet.last + 1) & 0xFF
        return packet.payload

    def kill_query(self) -> None:
        """Interrupt the running statement, if there is one."""
        if self._in_command and self._task is not None:
            self._kill_query = True
            self._task.cancel()

    def kill(self) -> None:
        """KILL: interrupt whatever runs and end the connection."""
        if self._task is not None and self._task is not asyncio.current_task():
            self.close()
            self._task.cancel()
        else:
            self.close_soon()

    def close_soon(self) -> None:
        """End the connection after the answer to the running command."""
        self._ends_after_command = True

    @property
    def is_idle(self) -> bool:
        return not self._in_command and (self.session is None or not self.session.in_transaction)

    def close(self) -> None:
        """End the connection once what is queued has been written."""
        if not self._closed:
            self.flush()
            self._closed = True
            assert self._transport is not None
            self._transport.close()
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def abort(self) -> None:
        """End the connection now."""
        self._closed = True
        assert self._transport is not None
        self._transport.abort()

    # The life of a connection

    async def _run(self) -> None:
        try:
            await self._login()
            await self._command_loop()
        except (Disconnected, SequenceBroken, ssl.SSLError):
            pass
        except MalformedPacket:
            self._say_condition(Condition.HANDSHAKE_ERROR if self.account is None else Condition.MALFORMED_PACKET)
        except AccessDenied as denied:
            self._deny(denied)
        except MillraceError as error:
            self._say(error.condition.code, error.condition.sqlstate, str(error))
        except asyncio.CancelledError:
            if not self._closed:
                raise
        except Exception:
            log.exception("connection %d failed", self.id)
        finally:
            self.close()
            self.server.dismiss(self)
            if self.session is not None:
                self.session.close()

    async def _login(self) -> None:
        server = self.server
        self.send(
            make_handshake_v10(
                capabilities=CAN(self._offered),
                server_charset=CharacterSet.utf8mb4,
                server_version=VERSION,
                connection_id=self.id,
                auth_data=self._nonce + b"\0",
                status_flags=packets.STATUS.SERVER_STATUS_AUTOCOMMIT,
                auth_plugin_name=SHA2,
            )
        )
        response = packets.parse_handshake_response(await self.receive(), self._offered)
        if isinstance(response, TlsRequest):
            assert server.tls is not None
            self._tls = TlsLayer(server.tls)
            if rest := self._framer.take_rest():
                self.data_received(rest)
            response = packets.parse_handshake_response(await self.receive(), self._offered)
            if isinstance(response, TlsRequest):
                raise MalformedPacket("TLS in TLS")
        self.capabilities = response.capabilities
        collation = collation_by_id(response.collation)
        user = response.user.decode(collation.charset.codec, "replace")
        self.account = await self._authenticate(user, response.authentication, response.plugin)
        session = self._open_session(user, collation.id)
        if response.database is not None:
            await session.use(response.database.decode(collation.charset.codec, "replace"))
        self.send(packets.ok(session.status))
        self.flush()
        if self.capabilities & CAN.CLIENT_COMPRESS:
            self._compression = CompressionLayer()
            if rest := self._framer.take_rest():
                self.data_received(rest)

    async def change_user(self, request: packets.ChangeUser) -> None:
        """COM_CHANGE_USER: a new session for whoever proves to be that user; otherwise the end."""
        old = self.session
        assert old is not None
        collation = collation_by_id(request.collation) if request.collation is not None else old.client_collation
        user = request.user.decode(collation.charset.codec, "replace")
        old.close()
        self.account = self.session = None
        self.deadline = self._loop.time() + self.server.limits.login_timeout_s
        self.account = await self._authenticate(user, request.authentication, request.plugin)
        session = self._open_session(user, collation.id)
        if request.database:
            await session.use(request.database.decode(collation.charset.codec, "replace"))
        self.send(packets.ok(session.status))

    async def _authenticate(self, user: str, response: bytes, plugin: str | None) -> Account:
        self._user_name = user
        return await self.server.authenticator.authenticate(self, user, self.host, response, plugin, self._nonce)

    def _open_session(self, user: str, collation_id: int) -> Session:
        assert self.account is not None
        self.session = Session(self.server.environment, self, self.account, user, collation_id)
        return self.session

    async def _command_loop(self) -> None:
        self._framer.payload_bytes_max = self.server.limits.packet_bytes_max
        commands = Commands(self)
        pipelined = 0
        while True:
            packet = self._framer.take()
            if packet is None:
                pipelined = 0
                packet = await self._next_command()
            else:
                # More was sent before our answer: gather answers, but let no one wait for them.
                pipelined += 1
                self._loop.call_soon(self.flush)
                if pipelined % PIPELINED_MAX == 0:
                    await asyncio.sleep(0)
            self._sequence = (packet.last + 1) & 0xFF
            if packet.payload is None:
                self._say_condition(Condition.PACKET_TOO_LARGE)
                raise Disconnected
            if packet.first != 0:
                self._say_condition(Condition.PACKETS_OUT_OF_ORDER)
                raise Disconnected
            going_on = await self._run_command(commands, packet.payload)
            if not going_on or self._ends_after_command or (self.server.draining and self.is_idle):
                raise Disconnected
            if self._writable is not None:
                await self.drain()

    async def _next_command(self) -> Packet:
        self.flush()
        assert self.session is not None
        self.deadline = self._loop.time() + self.session.idle_timeout_s
        packet = await self._next_packet()
        self.deadline = 0.0
        return packet

    async def _run_command(self, commands: Commands, payload: bytes) -> bool:
        """Handle one command, which KILL QUERY may interrupt; False when the connection is over."""
        self._in_command = True
        try:
            going_on = await commands.handle(payload)
            self._in_command = False
            if self._kill_query:
                await asyncio.sleep(0)  # the interruption came too late: it is raised here
        except asyncio.CancelledError:
            if not self._kill_query or self._closed:
                raise
            assert self._task is not None
            self._task.uncancel()
            if self._in_command:
                commands.report(MillraceError(Condition.QUERY_INTERRUPTED))
            going_on = True
        finally:
            self._in_command = self._kill_query = False
        return going_on

    async def _next_packet(self) -> Packet:
        while True:
            packet = self._framer.take()
            if packet is not None:
                return packet
            if self._closed:
                raise Disconnected
            if self._framer.is_skipping and self.account is None:
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

    def _write_raw(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def _deny(self, denied: AccessDenied) -> None:
        condition = Condition.ACCESS_DENIED
        using = "YES" if denied.with_password else "NO"
        message = condition.template.format(self._user_name, self.host_name, using)
        self._say(condition.code, condition.sqlstate, message)

    def _say_condition(self, condition: Condition) -> None:
        self._say(condition.code, condition.sqlstate, condition.template)

    def _say(self, code: int, sqlstate: str, message: str) -> None:
        """A last word before the connection ends."""
        if not self._closed:
            self.send(packets.error(code, sqlstate, message))
