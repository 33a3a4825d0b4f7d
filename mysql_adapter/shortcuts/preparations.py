"""What is remembered of prepared statements in a context: the answers to PREPARE, and how packets of EXECUTE are read.

Many drivers prepare a statement, execute it once and close it, again and again, and send numbers under the smallest type that holds them. So
the answer to a text that was prepared before is ready, but for the statement's number, and the forms of EXECUTE packets
are known by the statement's text, whichever connection has learnt them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from controller.sql.plan import OutputColumn
from dataflow.values.modes import Modes
from dataflow.values.types import SqlType
from mysql_adapter.sessions.prepared import Prepared
from mysql_adapter.shortcuts.write_shortcuts import WriteShortcut
from mysql_adapter.wire import packets
from mysql_adapter.wire.framing import frame
from mysql_adapter.wire.parameter_decoder import Decode
from mysql_adapter.wire.parameters import WireType

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session
    from mysql_adapter.shortcuts.shortcuts import Context, Shortcut

PREPARATIONS_MAX = 1000
FORMS_MAX = 4000
"""Of one context; beyond that, all are forgotten."""
ANSWER_BYTES_MAX = 16 << 10
"""Longer answers to PREPARE are made each time."""


class Preparation:
    """A statement that was planned, and the packets that say what its parameters and columns are."""

    __slots__ = ("_columns", "_database", "_packets", "_parameter_types", "_sql")

    def __init__(self, prepared: Prepared, payloads: Sequence[bytes]) -> None:
        """`payloads` are those behind the first, which has the statement's number."""
        self._sql = prepared.sql
        self._database = prepared.database
        self._parameter_types: tuple[SqlType, ...] = prepared.parameter_types
        self._columns: tuple[OutputColumn, ...] = prepared.columns
        self._packets = b"".join([frame(payload, (2 + number) & 0xFF) for number, payload in enumerate(payloads)])

    @property
    def is_small(self) -> bool:
        return len(self._sql) + len(self._packets) <= ANSWER_BYTES_MAX

    def answer(self, session: Session) -> bytes:
        """Prepare it once more; the session is left as if the command had been executed."""
        assert session.database == self._database, "it is part of the context"
        session.command_count += 1
        session.warnings = ()
        made = session.keep_prepared(self._sql, self._parameter_types, self._columns, True)
        return frame(packets.prepared(made.id, len(self._columns), made.parameter_count), 1) + self._packets


class PreparedForm:
    """How EXECUTE packets that begin like one seen before are to be read, and what answers them; nothing if they have to be executed."""

    __slots__ = ("context", "decode", "head", "modes", "shortcut", "start", "wire_types")

    def __init__(
        self,
        context: Context,
        shortcut: Shortcut | WriteShortcut | None,
        head: bytes,
        start: int,
        wire_types: Sequence[WireType],
        decode: Decode,
    ) -> None:
        self.context = context
        self.shortcut = shortcut
        self.head = head
        self.start = start
        self.wire_types = wire_types
        self.decode = decode
        self.modes: Modes | None = shortcut.modes if isinstance(shortcut, WriteShortcut) else None
        """What the session's have to be, if it matters."""


class Preparations:
    """Those of one context."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Preparation] = {}
        self._forms: dict[tuple[str, bytes, tuple[WireType, ...]], PreparedForm] = {}

    def known(self, text: bytes) -> Preparation | None:
        return self._answers.get(text)

    def keep(self, text: bytes, preparation: Preparation) -> None:
        if preparation.is_small:
            if len(self._answers) >= PREPARATIONS_MAX:
                self._answers.clear()
            self._answers[text] = preparation

    def form(self, sql: str, head: bytes, remembered: Sequence[WireType]) -> PreparedForm | None:
        """`remembered` are the types that hold where the packet's head names none."""
        return self._forms.get((sql, head, tuple(remembered)))

    def learn(self, sql: str, remembered: Sequence[WireType], form: PreparedForm) -> None:
        if len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        self._forms[sql, form.head, tuple(remembered)] = form

    def clear(self) -> None:
        self._answers.clear()
        self._forms.clear()
