"""COM_QUERY and the commands of prepared statements answered where they arrive, without a task's turn.

`answer` is called with what has just arrived on a connection that waits for a command. If
that is one whole command whose answer is at hand (see `shortcuts`), its packets are returned
and the session is left as if the command had been executed; otherwise nothing has happened.
If what is missing can be asked for, LATER is returned and the stream is given the answer when it has come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter, time
from typing import TYPE_CHECKING, Literal

from backend.execution.answering.instant import Found
from backend.execution.counted_statements import CountedStatement
from controller.sql.text.parameter_types import codes_of
from controller.sql.text.template import reader as template_reader
from dataflow.commit.statement_stage import ELSEWHERE
from dataflow.errors import MillraceError
from mysql_adapter.sessions.prepared import PREPARED_MAX, Prepared
from mysql_adapter.sessions.statement_limits import time_limit_s
from mysql_adapter.sessions.statement_origin import statement_name
from mysql_adapter.shortcuts.preparations import PreparedForm
from mysql_adapter.shortcuts.shortcuts import Context, Parameters, Shortcut, Shortcuts
from mysql_adapter.shortcuts.standing_answers import Name
from mysql_adapter.shortcuts.text_shape import Array, ReadText, read_text
from mysql_adapter.shortcuts.write_shortcuts import WriteShortcut
from mysql_adapter.wire import packets
from mysql_adapter.wire.answers import Answer
from mysql_adapter.wire.framing import frame
from mysql_adapter.wire.packets import FOUND_ROWS, PayloadReader
from mysql_adapter.wire.parameter_decoder import decoder_of
from mysql_adapter.wire.parameters import read_parameters, type_code
from mysql_adapter.wire.stream import LATER, Later, PacketStream

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

QUERY, PREPARE, EXECUTE = 3, 0x16, 0x17
CLOSE_HEAD, CLOSE_BYTES = b"\5\0\0\0\x19", 9
COUNT_AVAILABLE = 8
"""A flag of EXECUTE: the number of parameters is sent even if it is 0."""
FLAGS_AT, PARAMETERS_AT = 9, 14
"""Places in an EXECUTE packet, counted from its length."""
TIMED_EVERY = 64
"""One answer from shared memory in 64 is timed."""
TEXT_READ_BYTES_MAX = 4 << 10
"""Longer statements without a list are not read as they arrive: others would wait."""
LIST_READ_BYTES_MAX = 64 << 10
TEXT_KEPT_BYTES_MAX = 2 << 10
"""Longer statements are read again each time: they hardly ever come twice."""
NO_ATTRIBUTES = b"\0\1"
WRITES = frozenset({b"INSERT", b"UPDATE", b"DELETE"})


class ShortcutCommands:
    """Those of one connection. `session_changed` is to be called whenever a command was executed otherwise."""

    __slots__ = ("_asked", "_context", "_database", "_may_ask", "_may_write", "_session", "_shortcuts", "_stream")

    def __init__(self, shortcuts: Shortcuts, session: Session, stream: PacketStream) -> None:
        self._shortcuts = shortcuts
        self._session = session
        self._database = session.environment.database
        self._stream = stream
        self._context: Context | None = None
        self._may_ask = self._may_write = False
        self._asked: _Asked | None = None

    def session_changed(self, session: Session) -> None:
        self._session = session
        self._context = None
        # What may take only so long is executed, where it is interrupted in time.
        self._may_ask = not time_limit_s(session, "")
        self._may_write = session.transaction is None and not session.variables.get("transaction_read_only")

    def give_up(self, answer: bytes) -> None:
        """The command that is to be answered later gets this answer: it was interrupted."""
        self._asked = None
        self._stream.answer_later(answer)

    def answer(self, data: bytes) -> bytes | Literal[Later.LATER] | None:
        if data[:5] == CLOSE_HEAD:
            return self._close(data)
        # The number of the packet, which has to be 0, is the highest byte of this.
        if len(data) < 6 or int.from_bytes(data[:4], "little") != len(data) - 4:
            return None
        command = data[4]
        if command != EXECUTE and command != QUERY and command != PREPARE:
            return None
        context = self._current_context()
        if context is None:
            return None
        if command == PREPARE:
            return self._prepare(data, context)
        try:
            found = self._execute(data, context) if command == EXECUTE else self._query(data, context)
        except Exception:
            return None  # it will come again where the command is executed, and be reported
        if found is None or found is LATER:
            return found
        return self._answered(found)

    def _current_context(self) -> Context | None:
        context = self._context
        if context is None or context.catalog is not self._database.catalog:
            context = self._context = self._shortcuts.context(self._session, self._stream.capabilities)
        return context

    def _answered(self, found: Answer) -> bytes:
        self._shortcuts.answered += 1
        session = self._session
        session.command_count += 1
        session.select_count += 1
        session.statement_started = time()
        session.warnings = ()
        session.row_count = -1
        session.found_rows = found[1]
        return found[0]

    def _found(
        self,
        shortcut: Shortcut | WriteShortcut,
        parameters: Parameters,
        sql: str | bytes,
        answer: Callable[[Parameters], Answer | None] | None = None,
    ) -> Answer | Literal[Later.LATER] | None:
        counted = shortcut.counted
        if isinstance(shortcut, WriteShortcut):
            asked = _Asked(sql, counted)
            if not self._may_write or not shortcut.ask(parameters, partial(self._written, asked, shortcut)):
                return None
        else:
            answer = answer or shortcut.answer
            found = answer(parameters) if counted.hits % TIMED_EVERY else _timed(answer, parameters, counted)
            if found is not None:
                counted.hits += 1
                return found
            if not self._may_ask:
                return None
            asked = _Asked(sql, counted)
            if not shortcut.ask(parameters, partial(self._arrived, asked, shortcut, parameters)):
                return None
        self._asked = asked
        session = self._session
        session.statement, session.statement_started = asked.text, time()
        return LATER

    def _arrived(self, asked: _Asked, shortcut: Shortcut, parameters: Parameters, found: Found | None) -> None:
        """What was asked for has come; None if the command has to be executed."""
        if asked is not self._asked:
            return  # it was interrupted
        self._asked = None
        answer = None
        if found is not None:
            try:
                answer = shortcut.arrived(found, parameters)
            except Exception:
                answer = None  # as in `answer`
        asked.counted.asked += answer is not None
        self._session.asked_count += answer is not None
        self._answer_later(asked, None if answer is None else self._answered(answer))

    def _written(self, asked: _Asked, shortcut: WriteShortcut, result: int | MillraceError) -> None:
        """The worker has run the statement, or has not; or nobody knows."""
        if asked is not self._asked:
            return
        self._asked = None
        session = self._session
        if isinstance(result, MillraceError):
            session.command_count += 1
            session.warnings = ()
            session.failed(result)
            condition = result.condition
            error = packets.error(condition.code, condition.sqlstate, str(result), codec=session.results_codec)
            self._answer_later(asked, frame(error, 1))
        elif result == ELSEWHERE:
            self._answer_later(asked, None)
        else:
            session.command_count += 1
            counts_found = bool(self._stream.capabilities & FOUND_ROWS)
            self._answer_later(asked, shortcut.answer(result, session, counts_found))

    def _answer_later(self, asked: _Asked, answer: bytes | None) -> None:
        session = self._session
        seconds = time() - session.statement_started
        if answer is not None:
            asked.counted.run(seconds, name=statement_name(session))
            if seconds >= session.noticed_s:
                session.environment.query_log.took(session, asked.text, seconds)
        self._stream.answer_later(answer)

    # Text

    def _query(self, data: bytes, context: Context) -> Answer | Literal[Later.LATER] | None:
        text = data[5:]
        cache = self._shortcuts.texts
        name = (context, text)
        kept: tuple[Shortcut, Parameters] | None = cache.young.get(name) or cache.get(name)
        if kept is not None:
            return self._found(*kept, text)
        standing = self._shortcuts.standing.get(name)
        if standing is not None:
            return self._found(standing.shortcut, (), text, standing.answer)
        read = read_text(text)
        shortcut = None if read is None else context.known_shape(read.shape, self._session)
        if read is not None and shortcut is not None:
            if read.numbers is not None and isinstance(shortcut, Shortcut):
                return self._found_list(shortcut, read, read.numbers, name)
            parameters = read.parameters
        else:
            length_max = TEXT_READ_BYTES_MAX if read is None or read.numbers is None else LIST_READ_BYTES_MAX
            known = self._read(text, context) if len(text) <= length_max else None
            if known is None:
                return None
            shortcut, parameters = known
            if read is not None and context.learn_shape(read, shortcut, parameters) and read.numbers is not None:
                return self._found(shortcut, parameters, text)  # the next one is known by its shape, and its answer may stand
        if isinstance(shortcut, Shortcut) and len(text) <= TEXT_KEPT_BYTES_MAX:  # the same is not written twice
            cache.put(name, (shortcut, parameters))
        return self._found(shortcut, parameters, text)

    def _found_list(self, shortcut: Shortcut, read: ReadText, numbers: Array, name: Name) -> Answer | Literal[Later.LATER] | None:
        standing = self._shortcuts.standing
        moment = None if standing.is_new(name) else shortcut.moment(read.parameters)
        found: Answer | Literal[Later.LATER] | None = shortcut.answer_batch(numbers) if shortcut.takes_list else None
        if found is not None:
            shortcut.counted.hits += 1
        else:
            found = self._found(shortcut, read.parameters, name[1], shortcut.answer_each)
        if moment is not None and found is not None and found is not LATER:
            standing.keep(name, shortcut, moment, found)
        return found

    def _read(self, text: bytes, context: Context) -> tuple[Shortcut | WriteShortcut, Parameters] | None:
        if context.query_attributes:
            if not text.startswith(NO_ATTRIBUTES):
                return None
            text = text[len(NO_ATTRIBUTES) :]
        word = text[:6].upper()
        is_write = self._may_write and word in WRITES
        if (word != b"SELECT" and not is_write) or b";" in text:
            return None
        session, settings = self._session, context.settings
        sql = session.decode(text)
        reading = template_reader(settings.ansi_quotes, settings.backslash_escapes).read(sql)
        codes = codes_of(reading)
        if codes is None or "x" in codes:
            return None
        statement = (reading.template.text, codes, False)
        shortcut = context.write(statement, session, sql) if is_write else context.shortcut(statement, session, sql)
        return None if shortcut is None else (shortcut, tuple(reading.values))

    # Prepared statements

    def _close(self, data: bytes) -> bytes | Literal[Later.LATER] | None:
        """A statement is closed, which nobody answers; most often the client's next command has come with that. If it is executed, the statement is closed again."""
        if len(data) < CLOSE_BYTES or self._current_context() is None:
            return None
        session = self._session
        session.prepared.pop(int.from_bytes(data[5:CLOSE_BYTES], "little"), None)
        found = self.answer(data[CLOSE_BYTES:]) if len(data) > CLOSE_BYTES else b""
        session.command_count += found is not None
        return found

    def _prepare(self, data: bytes, context: Context) -> bytes | None:
        known = context.preparations.known(data[5:])
        return None if known is None or len(self._session.prepared) >= PREPARED_MAX else known.answer(self._session)

    def _execute(self, data: bytes, context: Context) -> Answer | Literal[Later.LATER] | None:
        prepared = self._session.prepared.get(int.from_bytes(data[5:9], "little"))
        if prepared is None or prepared.long_data or prepared.long_data_overflowed:
            return None
        known = prepared.form
        if (
            known is None
            or known.context is not context
            or (known.wire_types is not prepared.wire_types and known.wire_types != prepared.wire_types)
            or known.head != data[FLAGS_AT : known.start]
            or (known.modes is not None and known.modes != self._session.modes)
        ):
            known = self._known_form(prepared, data, context) or self._learnt(prepared, data, context)
        if known is not None and known.shortcut is None:
            return None
        parameters = None if known is None else known.decode(data, known.start)
        if known is not None and known.shortcut is not None and parameters is not None:
            found = self._found(known.shortcut, parameters, prepared.sql)
        else:
            found = self._execute_unusual(prepared, data, context)
        if found is not None:
            prepared.cursor = None
        return found

    def _execute_unusual(self, prepared: Prepared, data: bytes, context: Context) -> Answer | Literal[Later.LATER] | None:
        """With parameters of all kinds, which are read one by one."""
        reader = self._parameters(prepared, data, context)
        if reader is None:
            return None
        session = self._session
        typed, wire_types = read_parameters(
            reader, prepared.parameter_count, prepared.wire_types, {}, session.client_codec, context.query_attributes
        )
        codes = tuple([type_code(each) for each in typed])
        shortcut = self._shortcut_of(prepared, codes, context)
        found = None if shortcut is None else self._found(shortcut, tuple([value for value, _ in typed]), prepared.sql)
        if found is not None:
            prepared.wire_types = wire_types
        return found

    def _shortcut_of(self, prepared: Prepared, codes: tuple[str, ...], context: Context) -> Shortcut | WriteShortcut | None:
        statement, sql = (prepared.sql, codes, True), prepared.sql
        if sql[:6].upper().encode() in WRITES:
            return context.write(statement, self._session, sql) if self._may_write else None
        return context.shortcut(statement, self._session, sql)

    def _parameters(self, prepared: Prepared, data: bytes, context: Context) -> PayloadReader | None:
        """Where the parameters begin in a packet that asks for nothing but rows; None if it does."""
        count, flags = prepared.parameter_count, data[FLAGS_AT]
        if not prepared.planned or flags & ~(COUNT_AVAILABLE if context.query_attributes else 0):
            return None
        if prepared.database != self._session.database:
            return None  # the context is that of another
        reader = PayloadReader(data, PARAMETERS_AT)
        if context.query_attributes and (count or flags) and reader.length() != count:
            return None
        return reader

    def _known_form(self, prepared: Prepared, data: bytes, context: Context) -> PreparedForm | None:
        """That of packets like this one, from wherever."""
        count = prepared.parameter_count
        if not count or context.query_attributes or prepared.database != self._session.database:
            return None
        start = PARAMETERS_AT + (count + 7) // 8 + 1
        names_types = data[start - 1] == 1
        if names_types:
            start += 2 * count
        found = context.preparations.form(prepared.sql, data[FLAGS_AT:start], () if names_types else prepared.wire_types)
        if found is None or (found.modes is not None and found.modes != self._session.modes):
            return None
        prepared.wire_types, prepared.form = found.wire_types, found
        return found

    def _learnt(self, prepared: Prepared, data: bytes, context: Context) -> PreparedForm | None:
        """Look at a packet closely, and remember how to read others like it; None if it has unusual parameters."""
        reader = self._parameters(prepared, data, context)
        if reader is None:
            return None
        count, wire_types, remembered, nulls = prepared.parameter_count, prepared.wire_types, prepared.wire_types, 0
        if count:
            nulls = int.from_bytes(reader.fixed((count + 7) // 8), "little")
            if reader.uint(1):
                sent, remembered = [], ()
                for _ in range(count):
                    sent.append((reader.uint(1), bool(reader.uint(1) & 0x80)))
                    if context.query_attributes:
                        reader.counted()
                if sent != list(wire_types):
                    wire_types = sent
        if len(wire_types) != count:
            return None
        session = self._session
        decoder = decoder_of(tuple(wire_types), nulls, session.client_codec)
        if decoder is None:
            return None
        decode, codes = decoder
        shortcut = self._shortcut_of(prepared, codes, context)
        head = data[FLAGS_AT : reader.position]
        learnt = PreparedForm(context, shortcut, head, reader.position, wire_types, decode)
        if shortcut is not None:
            prepared.wire_types, prepared.form = wire_types, learnt
            if count and not context.query_attributes:
                context.preparations.learn(prepared.sql, remembered, learnt)
        return learnt


class _Asked:
    """A command that is answered when what it wants has come."""

    __slots__ = ("_sql", "counted")

    def __init__(self, sql: str | bytes, counted: CountedStatement) -> None:
        self._sql = sql
        self.counted = counted

    @property
    def text(self) -> str:
        return self._sql if isinstance(self._sql, str) else self._sql.decode(errors="replace")


def _timed(answer: Callable[[Parameters], Answer | None], parameters: Parameters, counted: CountedStatement) -> Answer | None:
    started = perf_counter()
    found = answer(parameters)
    if found is not None:
        counted.took(perf_counter() - started, TIMED_EVERY)
    return found
