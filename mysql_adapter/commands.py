"""The commands of an authenticated connection, one method for each.

Every command is answered completely or with exactly one error, except those the protocol
leaves unanswered (QUIT, STMT_CLOSE, STMT_SEND_LONG_DATA).
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mysql_mimic.types import Commands as COM
from mysql_mimic.types import ComStmtExecuteFlags

from backend.execution.outcome import Answer, Done, ResultSet, RowStream
from backend.execution.pace import aside
from backend.network.origin import observers
from backend.processes.process_log import without_secrets
from dataflow.errors import Condition, InvalidStatement, MillraceError
from mysql_adapter.neighbours import kill
from mysql_adapter.sessions.dispatch import statements_of
from mysql_adapter.sessions.prepared import Prepared
from mysql_adapter.sessions.session import Session
from mysql_adapter.sessions.statement_origin import begin_statement, end_statement, statement_name
from mysql_adapter.statements.describe import field_list
from mysql_adapter.wire import answers, packets
from mysql_adapter.wire.columns import column_definition
from mysql_adapter.wire.framing import ConnectionOver, Disconnected
from mysql_adapter.wire.packets import CAN, MalformedPacket, PayloadReader, parse_change_user
from mysql_adapter.wire.parameters import Typed, read_parameters

if TYPE_CHECKING:
    from mysql_adapter.connection import Connection

log = logging.getLogger(__name__)

LOGGED_CHARACTERS_MAX = 4_000
LOGGED_BYTES_MAX = 4 * LOGGED_CHARACTERS_MAX
Handler = Callable[["Commands", bytes], Awaitable[None]]


class Commands:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stream = connection.stream
        self.multi_statements = bool(self._stream.capabilities & CAN.CLIENT_MULTI_STATEMENTS)

    @property
    def session(self) -> Session:
        session = self._connection.session
        assert session is not None
        return session

    async def handle(self, payload: bytes) -> bool:
        """Answer one command; False when the connection is over."""
        if not payload:
            self.report(InvalidStatement(Condition.UNKNOWN_COMMAND))
            return True
        command = payload[0]
        session = self.session
        query_log = session.environment.query_log
        if query_log.is_on:
            query_log.command(session, command, self._text_of(payload))
        if command == COM.COM_QUIT:
            return False
        handler = _HANDLERS.get(command)
        started = time.monotonic()
        session.command_count += 1
        session.counted, failed = None, True
        span = begin_statement(session) if observers.is_told else None
        try:
            if handler is None:
                raise InvalidStatement(Condition.UNKNOWN_COMMAND)
            await handler(self, payload)
            failed = False
        except MillraceError as error:
            if command not in _UNANSWERED:
                self.report(error)
        except (MalformedPacket, struct.error):
            if command not in _UNANSWERED:
                self.report(MillraceError(Condition.MALFORMED_PACKET))
        except ConnectionOver:
            raise
        except Exception as error:
            log.exception("command %d of connection %d failed: %s", command, self._connection.id, self._text_of(payload))
            self.report(MillraceError(Condition.UNKNOWN_ERROR, f"internal error: {type(error).__name__}"))
        seconds = time.monotonic() - started
        if span is not None:
            end_statement(session, span, failed)
        if session.counted is not None:
            session.counted.run(seconds, failed, statement_name(session))
        elif command == COM.COM_QUERY:
            session.environment.statements.run_other(session.statement, seconds, failed)
        if seconds >= session.noticed_s:
            query_log.took(session, self._text_of(payload), seconds)
        return True

    def _text_of(self, payload: bytes) -> str:
        """The statement of a command, for the log."""
        if payload[0] in (COM.COM_QUERY, COM.COM_STMT_PREPARE, COM.COM_INIT_DB):
            return without_secrets(payload[1 : LOGGED_BYTES_MAX + 1].decode(errors="replace"))[:LOGGED_CHARACTERS_MAX]
        if payload[0] == COM.COM_STMT_EXECUTE:
            statement = self.session.prepared.get(int.from_bytes(payload[1:5], "little"))
            return "" if statement is None else without_secrets(statement.sql[:LOGGED_CHARACTERS_MAX])
        return ""

    def report(self, error: MillraceError) -> None:
        """Send `error` and keep it for SHOW ERRORS."""
        condition = error.condition
        session = self.session
        session.failed(error)
        codec = session.results_codec
        self._stream.send(packets.error(condition.code, condition.sqlstate, str(error), codec=codec))

    # Statements as text

    async def query(self, payload: bytes) -> None:
        stream, session = self._stream, self.session
        position = 1
        if stream.capabilities & packets.QUERY_ATTRIBUTES:
            position = self._skip_attributes(payload)
        statements = aside(len(payload), lambda: self._statements(payload[position:]))
        last = len(statements) - 1
        for index, statement in enumerate(statements):
            outcome = await session.run(statement)
            status = session.status | (packets.MORE_RESULTS if index < last else 0)
            await self._send(outcome, status, False)
            if index < last and stream.wants_drain:
                await stream.drain()

    def _statements(self, text: bytes) -> list[str]:
        session = self.session
        return statements_of(session.decode(text), session.settings.backslash_escapes, self.multi_statements)

    def _skip_attributes(self, payload: bytes) -> int:
        reader = PayloadReader(payload, 1)
        count = reader.length()
        reader.length()
        if count:
            if count > len(payload):
                raise MalformedPacket("more attributes than bytes")
            read_parameters(reader, count, (), {}, self.session.client_codec, named=True)
        return reader.position

    # Prepared statements

    async def prepare(self, payload: bytes) -> None:
        stream, session = self._stream, self.session
        statement = await session.prepare(session.decode(payload[1:]))
        end = [] if stream.capabilities & packets.DEPRECATE_EOF else [packets.eof(session.status)]
        described: list[bytes] = []
        for columns in (statement.parameter_columns, statement.columns):
            described += [column_definition(each, session.results_collation_id) for each in columns] + (end if columns else [])
        for each in (packets.prepared(statement.id, len(statement.columns), statement.parameter_count), *described):
            stream.send(each)
        session.environment.shortcuts.prepared(session, stream.capabilities, payload[1:], statement, described)

    async def execute(self, payload: bytes) -> None:
        stream, session = self._stream, self.session
        reader = PayloadReader(payload, 1)
        statement = self._prepared(reader.uint(4), "mysqld_stmt_execute")
        flags = reader.uint(1)
        reader.uint(4)
        statement.check_long_data()
        values = self._values(statement, reader, flags)
        statement.cursor = None
        outcome = await session.execute(statement, values)
        if flags & ComStmtExecuteFlags.CURSOR_TYPE_READ_ONLY and not isinstance(outcome, Done):
            statement.open_cursor(outcome)
            session.format(outcome.columns).send_header(stream)
            warnings = len(outcome.warnings) if isinstance(outcome, ResultSet) else 0
            answers.send_end(stream, session.status | packets.CURSOR_EXISTS, warnings)
        else:
            await self._send(outcome, session.status, True)

    async def _send(self, answer: Answer, status: int, binary: bool) -> None:
        session, stream = self.session, self._stream
        if isinstance(answer, RowStream):
            await answers.send_stream(stream, session.format(answer.columns), answer, status, binary)
            session.streamed(answer)
        elif isinstance(answer, ResultSet):
            await answers.send_result(stream, session.format(answer.columns), answer, status, binary)
        else:
            answers.send_done(stream, answer, status)

    def _values(self, statement: Prepared, reader: PayloadReader, flags: int) -> list[Typed]:
        count = statement.parameter_count
        named = bool(self._stream.capabilities & packets.QUERY_ATTRIBUTES)
        try:
            if named and (count or flags & ComStmtExecuteFlags.PARAMETER_COUNT_AVAILABLE):
                sent = reader.length()
                if sent < count or sent > len(reader.data):
                    raise MalformedPacket("fewer parameters than the statement has")
            else:
                sent = count
            if not sent:
                return []
            values, statement.wire_types = read_parameters(
                reader, sent, statement.wire_types, statement.long_data, self.session.client_codec, named
            )
            return values[:count]
        except MalformedPacket:
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, "mysqld_stmt_execute") from None
        finally:
            statement.long_data.clear()

    async def fetch(self, payload: bytes) -> None:
        stream, session = self._stream, self.session
        reader = PayloadReader(payload, 1)
        statement = self._prepared(reader.uint(4), "mysqld_stmt_fetch")
        wanted = reader.uint(4)
        if statement.cursor is None:
            raise InvalidStatement(Condition.CURSOR_MISSING)
        columns, rows, over = await statement.fetch(wanted)
        await answers.send_rows(stream, session.format(columns).encoder(True), rows)
        mark = packets.LAST_ROW_SENT if over else packets.CURSOR_EXISTS
        answers.send_end(stream, session.status | mark)

    async def send_long_data(self, payload: bytes) -> None:
        reader = PayloadReader(payload, 1)
        statement = self.session.prepared.get(reader.uint(4))
        index = reader.uint(2)
        if statement is not None and index < statement.parameter_count:
            statement.append_long_data(index, reader.rest(), self._connection.server.limits.packet_bytes_max)

    async def close_statement(self, payload: bytes) -> None:
        self.session.prepared.pop(PayloadReader(payload, 1).uint(4), None)

    async def reset_statement(self, payload: bytes) -> None:
        statement = self._prepared(PayloadReader(payload, 1).uint(4), "mysqld_stmt_reset")
        statement.long_data.clear()
        statement.long_data_overflowed = False
        statement.cursor = None
        self._ok()

    def _prepared(self, statement_id: int, command: str) -> Prepared:
        statement = self.session.prepared.get(statement_id)
        if statement is None:
            raise InvalidStatement(Condition.UNKNOWN_PREPARED, statement_id, command)
        return statement

    # The connection itself

    async def init_database(self, payload: bytes) -> None:
        await self.session.use(self.session.decode(payload[1:]))
        self._ok()

    async def ping(self, payload: bytes) -> None:
        self._ok()

    async def statistics(self, payload: bytes) -> None:
        self._stream.send(self._connection.server.statistics().encode())

    async def set_option(self, payload: bytes) -> None:
        option = PayloadReader(payload, 1).uint(2)
        if option > 1:
            raise InvalidStatement(Condition.UNKNOWN_COMMAND)
        self.multi_statements = option == 0
        answers.send_end(self._stream, self.session.status)

    async def field_list(self, payload: bytes) -> None:
        reader = PayloadReader(payload, 1)
        table = self.session.decode(reader.terminated())
        pattern = self.session.decode(reader.rest())
        for column, default in await field_list(self.session, table, pattern):
            definition = column_definition(column, self.session.results_collation_id)
            shown = b"\xfb" if default is None else packets.counted(default.encode())
            self._stream.send(definition + shown)
        answers.send_end(self._stream, self.session.status)

    async def change_user(self, payload: bytes) -> None:
        try:
            await self._connection.change_user(parse_change_user(payload[1:], self._stream.capabilities))
        except MillraceError as error:
            self.report(error)
            raise Disconnected from error
        except MalformedPacket as error:
            raise Disconnected from error

    async def reset_connection(self, payload: bytes) -> None:
        self.session.reset()
        self._ok()

    async def process_kill(self, payload: bytes) -> None:
        await kill(self.session, PayloadReader(payload, 1).uint(4), query_only=False)
        self._ok()

    async def process_info(self, payload: bytes) -> None:
        await self.query_text("SHOW PROCESSLIST")

    async def query_text(self, sql: str) -> None:
        await self._send(await self.session.run(sql), self.session.status, False)

    async def acknowledge(self, payload: bytes) -> None:
        """DEBUG and REFRESH: there is nothing to do."""
        answers.send_end(self._stream, self.session.status)

    def _ok(self) -> None:
        self._stream.send(packets.ok(self.session.status))


_UNANSWERED = frozenset({int(COM.COM_STMT_SEND_LONG_DATA), int(COM.COM_STMT_CLOSE)})

_HANDLERS: dict[int, Handler] = {
    COM.COM_QUERY: Commands.query,
    COM.COM_STMT_PREPARE: Commands.prepare,
    COM.COM_STMT_EXECUTE: Commands.execute,
    COM.COM_STMT_FETCH: Commands.fetch,
    COM.COM_STMT_SEND_LONG_DATA: Commands.send_long_data,
    COM.COM_STMT_CLOSE: Commands.close_statement,
    COM.COM_STMT_RESET: Commands.reset_statement,
    COM.COM_INIT_DB: Commands.init_database,
    COM.COM_PING: Commands.ping,
    COM.COM_STATISTICS: Commands.statistics,
    COM.COM_SET_OPTION: Commands.set_option,
    COM.COM_FIELD_LIST: Commands.field_list,
    COM.COM_CHANGE_USER: Commands.change_user,
    COM.COM_RESET_CONNECTION: Commands.reset_connection,
    COM.COM_PROCESS_KILL: Commands.process_kill,
    COM.COM_PROCESS_INFO: Commands.process_info,
    COM.COM_DEBUG: Commands.acknowledge,
}
