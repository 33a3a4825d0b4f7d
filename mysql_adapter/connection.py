"""One client: login, then commands until it leaves.

Invariants:
- Nothing a client sends reaches `Commands` before `Authenticator.authenticate` has returned.
- Packets are handled strictly one after the other, in a task of the connection's own, so a
  connection that waits never holds up another.

What commands mean is in `commands`, and bytes are the `stream`'s; this module knows only when
commands come and end.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING

from mysql_mimic.charset import CharacterSet
from mysql_mimic.packets import make_handshake_v10

from backend.execution.memory_account import MemoryAccount
from backend.execution.pace import paced
from controller.accounts import Account, is_loopback
from dataflow.errors import Condition, InvalidStatement, MillraceError
from mysql_adapter.authentication import AccessDenied, make_nonce
from mysql_adapter.commands import Commands
from mysql_adapter.sessions.session import Session
from mysql_adapter.sessions.statement_limits import memory_limit_bytes
from mysql_adapter.sessions.variables import VERSION
from mysql_adapter.shortcuts.shortcut_commands import ShortcutCommands
from mysql_adapter.wire import packets
from mysql_adapter.wire.charsets import collation_by_id
from mysql_adapter.wire.framing import Disconnected, Packet, SequenceBroken, frame
from mysql_adapter.wire.packets import CAN, MalformedPacket, TlsRequest
from mysql_adapter.wire.stream import PacketStream

if TYPE_CHECKING:
    from mysql_adapter.server import Server

log = logging.getLogger(__name__)

PIPELINED_MAX = 16
"""Commands of one connection that are handled before others get their turn."""

OFFERED = int(
    CAN.CLIENT_LONG_PASSWORD
    | CAN.CLIENT_FOUND_ROWS
    | CAN.CLIENT_LONG_FLAG
    | CAN.CLIENT_CONNECT_WITH_DB
    | CAN.CLIENT_NO_SCHEMA
    | CAN.CLIENT_COMPRESS
    | CAN.CLIENT_LOCAL_FILES
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
    | CAN.CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS
    | CAN.CLIENT_DEPRECATE_EOF
    | CAN.CLIENT_QUERY_ATTRIBUTES
)


class Connection:
    def __init__(self, server: Server, connection_id: int) -> None:
        self.server = server
        self.id = connection_id
        self.stream = PacketStream(self, server.limits.write_timeout_s)
        self.account: Account | None = None
        self.session: Session | None = None
        self._offered = OFFERED | (int(CAN.CLIENT_SSL) if server.tls else 0)
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._interruption: Condition | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._in_command = False
        self._ends_after_command = False
        self._user_name = ""
        self._shortcuts: ShortcutCommands | None = None
        self._nonce = make_nonce()

    # What the stream tells

    def connected(self) -> None:
        refusal = self.server.admit(self)
        if refusal is not None:
            self.stream.send(packets.early_error(refusal))
            self.stream.close()
            return
        self.stream.deadline = self._loop.time() + self.server.login_timeout_s
        self._task = self._loop.create_task(self._run())

    def lost(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # What sessions and the server ask and do

    @property
    def host_name(self) -> str:
        """Where the client is, as MySQL names it in accounts and messages."""
        return "localhost" if is_loopback(self.stream.host) else self.stream.host

    @property
    def peer(self) -> str:
        return f"{self.host_name}:{self.stream.port}"

    @property
    def is_waiting(self) -> bool:
        """No command is running."""
        return not self._in_command and not self.stream.is_asked

    @property
    def is_idle(self) -> bool:
        """No command is running and nothing is uncommitted."""
        return self.is_waiting and (self.session is None or not self.session.in_transaction)

    def kill_query(self, reason: Condition = Condition.QUERY_INTERRUPTED) -> None:
        """Interrupt the running statement, if there is one."""
        if self._in_command and self._interruption is None and self._task is not None:
            self._interruption = reason
            self._task.cancel()
        elif self.stream.is_asked and self._shortcuts is not None:
            error = packets.error(reason.code, reason.sqlstate, reason.template)
            self._shortcuts.give_up(frame(error, 1))

    def limit_time(self, seconds: float) -> None:
        """Interrupt the running statement after that time; 0 for never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds:
            self._timer = self._loop.call_later(seconds, self.kill_query, Condition.QUERY_TIMEOUT)

    def kill(self) -> None:
        """Interrupt whatever runs and end the connection."""
        if self._task is not None and self._task is not asyncio.current_task():
            if self.stream.is_congested:  # what it does not read will not be waited for
                self.stream.abort()
            else:
                self.stream.close()
            self._task.cancel()
        else:
            self.close_soon()

    def close_soon(self) -> None:
        """End the connection after the answer to the running command."""
        self._ends_after_command = True

    # The life of a connection

    async def _run(self) -> None:
        broke_off = True
        try:
            await self._login()
            await self._command_loop()
        except (Disconnected, SequenceBroken, ssl.SSLError):
            pass
        except MalformedPacket:
            self._say_condition(Condition.HANDSHAKE_ERROR if self.account is None else Condition.MALFORMED_PACKET)
        except AccessDenied as denied:
            broke_off = False
            self._deny(denied)
        except MillraceError as error:
            broke_off = False
            self._say(error.condition.code, error.condition.sqlstate, str(error))
        except asyncio.CancelledError:
            if not self.stream.closed:
                raise
        except Exception:
            log.exception("connection %d failed", self.id)
        finally:
            self.stream.close()
            self.server.admission.leave(self, broke_off)
            self.server.dismiss(self)
            if self.session is not None:
                self.session.close()
            # Nothing may be left for the garbage collector: it comes by numbers of objects, and a variable may have megabytes.
            self.session = self._task = self._shortcuts = None
            self.stream.release()

    async def _login(self) -> None:
        stream = self.stream
        stream.send(
            make_handshake_v10(
                capabilities=CAN(self._offered),
                server_charset=CharacterSet.utf8mb4,
                server_version=VERSION,
                connection_id=self.id,
                auth_data=self._nonce + b"\0",
                status_flags=packets.STATUS.SERVER_STATUS_AUTOCOMMIT,
                auth_plugin_name=str(self.server.environment.globals.get("default_authentication_plugin")),
            )
        )
        response = packets.parse_handshake_response(await stream.receive(), self._offered)
        if isinstance(response, TlsRequest):
            assert self.server.tls is not None
            stream.start_tls(self.server.tls.context)
            response = packets.parse_handshake_response(await stream.receive(), self._offered)
            if isinstance(response, TlsRequest):
                raise MalformedPacket("TLS in TLS")
        stream.capabilities = response.capabilities
        collation = collation_by_id(response.collation)
        user = response.user.decode(collation.charset.codec, "replace")
        self.account = await self._authenticate(user, response.authentication, response.plugin)
        self.server.admission.logged_in(self, user)
        session = self._open_session(user, collation.id)
        if response.database is not None:
            await session.use(response.database.decode(collation.charset.codec, "replace"))
        stream.send(packets.ok(session.status))
        if stream.capabilities & CAN.CLIENT_COMPRESS:
            stream.start_compression()

    async def change_user(self, request: packets.ChangeUser) -> None:
        """COM_CHANGE_USER: a new session for whoever proves to be that user; otherwise the end."""
        old = self.session
        assert old is not None
        collation = collation_by_id(request.collation) if request.collation is not None else old.client_collation
        user = request.user.decode(collation.charset.codec, "replace")
        old.close()
        self.account = self.session = None
        self.stream.deadline = self._loop.time() + self.server.login_timeout_s
        self.account = await self._authenticate(user, request.authentication, request.plugin)
        self.server.admission.logged_in(self, user)
        session = self._open_session(user, collation.id)
        if request.database:
            await session.use(request.database.decode(collation.charset.codec, "replace"))
        self.stream.deadline = 0.0
        self.stream.send(packets.ok(session.status))

    async def _authenticate(self, user: str, response: bytes, plugin: str | None) -> Account:
        self._user_name = user
        admission, stream = self.server.admission, self.stream
        stream.deadline += admission.throttle.delay_s(user, stream.host)
        try:
            if not await admission.delay(user, stream.host):
                raise AccessDenied(True)
            account = await self.server.authenticator.authenticate(
                stream, user, stream.host, response, plugin, self._nonce
            )
            if account.locked:
                raise InvalidStatement(Condition.ACCOUNT_LOCKED, account.user, self.host_name)
            if account.expired and not stream.capabilities & CAN.CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS:
                raise InvalidStatement(Condition.PASSWORD_EXPIRED)
            if account.needs_tls and not stream.secure:
                raise AccessDenied(bool(account.stored))
        except (AccessDenied, MillraceError) as error:
            admission.denied(self, user, str(error) or "the password is wrong")
            raise
        return account

    def _open_session(self, user: str, collation_id: int) -> Session:
        assert self.account is not None
        self.session = Session(self.server.environment, self, self.account, user, collation_id)
        return self.session

    async def _command_loop(self) -> None:
        stream = self.stream
        stream.allow(self.server.limits.packet_bytes_max)
        commands = Commands(self)
        assert self.session is not None
        self.server.environment.query_log.connected(self.session)
        shortcuts = self._shortcuts = ShortcutCommands(self.server.environment.shortcuts, self.session, stream)
        pipelined = 0
        while True:
            packet = stream.take()
            if packet is None:
                pipelined = 0
                packet = await self._next_command(shortcuts)
            else:
                # More was sent before our answer: gather answers, but let no one wait for them.
                pipelined += 1
                self._loop.call_soon(stream.flush)
                if pipelined % PIPELINED_MAX == 0:
                    await asyncio.sleep(0)
            if packet.payload is None:
                self._say_condition(Condition.PACKET_TOO_LARGE)
                raise Disconnected
            if packet.first != 0 and not stream.is_compressed:
                self._say_condition(Condition.PACKETS_OUT_OF_ORDER)
                raise Disconnected
            going_on = await self._run_command(commands, packet.payload)
            if not going_on or self._ends_after_command or (self.server.draining and self.is_idle):
                raise Disconnected
            if stream.is_congested:
                await stream.drain()

    async def _next_command(self, shortcuts: ShortcutCommands) -> Packet:
        stream, session = self.stream, self.session
        stream.flush()
        assert session is not None
        stream.idle_timeout_s = session.idle_timeout_s
        stream.deadline = self._loop.time() + session.idle_timeout_s
        shortcuts.session_changed(session)
        stream.shortcut = shortcuts.answer
        packet = await stream.next_packet()
        stream.shortcut = None
        stream.deadline = 0.0
        return packet

    async def _run_command(self, commands: Commands, payload: bytes) -> bool:
        """Handle one command, which KILL QUERY may interrupt; False when the connection is over."""
        self._in_command = True
        assert self.session is not None
        watch = self.server.environment.watch
        watch.begin()
        try:
            going_on = await paced(commands.handle(payload), MemoryAccount(memory_limit_bytes(self.session)))
            self._in_command = False
            if self._interruption is not None:
                await asyncio.sleep(0)  # the interruption came too late: it is raised here
        except asyncio.CancelledError:
            if self._interruption is None or self.stream.closed:
                raise
            assert self._task is not None
            self._task.uncancel()
            if self._in_command:
                commands.report(MillraceError(self._interruption))
            going_on = True
        finally:
            watch.end()
            self._in_command, self._interruption = False, None
            if self._timer is not None:
                self.limit_time(0)
        return going_on

    def _deny(self, denied: AccessDenied) -> None:
        condition = Condition.ACCESS_DENIED
        using = "YES" if denied.with_password else "NO"
        message = condition.template.format(self._user_name, self.host_name, using)
        self._say(condition.code, condition.sqlstate, message)

    def _say_condition(self, condition: Condition) -> None:
        self._say(condition.code, condition.sqlstate, condition.template)

    def _say(self, code: int, sqlstate: str, message: str) -> None:
        """A last word before the connection ends."""
        if not self.stream.closed:
            self.stream.send(packets.error(code, sqlstate, message))
