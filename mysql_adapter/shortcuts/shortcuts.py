"""Statements whose answers are in shared memory, keyed by session context.

A `Shortcut` answers one planned SELECT with packets that are ready to go out. It belongs to a
`Context`: everything about a session that a plan, its privileges or the bytes of a result
depend on, under one catalog. Sessions that agree on all of that share a context. With
another catalog (a definition, or an account, has changed) everything is forgotten.

Invariants:
- A shortcut exists only for statements that its context's account may execute.
- Packets are kept by the encoded rows that they were made of, so none is ever out of date.
- What has warnings has no answer here, and no packets are kept of it: the statement is executed, each time.
- Whatever is unusual has no shortcut: the statement is then executed as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.execution.answering.instant import Found, InstantQuery
from backend.execution.counted_statements import CountedStatement
from controller.catalog import Catalog
from controller.privileges import check_plan
from controller.sql.plan import Plan
from controller.sql.settings import Settings
from dataflow.errors import MillraceError
from dataflow.expressions.notices import is_silent, listen
from dataflow.values.modes import Modes
from dataflow.values.types import Value
from mysql_adapter.shortcuts.bounded_cache import BoundedCache, Seen
from mysql_adapter.shortcuts.preparations import Preparation, Preparations
from mysql_adapter.shortcuts.standing_answers import StandingAnswers
from mysql_adapter.shortcuts.text_shape import ReadText, Shape
from mysql_adapter.shortcuts.write_shortcuts import WriteShortcut, write_shortcut
from mysql_adapter.wire import packets
from mysql_adapter.wire.answers import Answer, ResultFormat, RowPackets

if TYPE_CHECKING:
    from mysql_adapter.database import DatabaseFace
    from mysql_adapter.sessions.prepared import Prepared
    from mysql_adapter.sessions.session import Session

PACKETS_BYTES_MAX = 64 << 20
TEXTS_BYTES_MAX = 32 << 20
ANSWER_BYTES_MAX = 64 << 10
"""Larger answers are made each time."""
STATEMENTS_MAX = 4000
"""In all contexts together; beyond that, all are forgotten."""
STATEMENT_LENGTH_MAX = 8 << 10
CONTEXTS_MAX = 1000
KEYS_APART_MIN = 8
"""Of so many keys, the rows of each are kept, not those of all together."""
SHAPES_MAX = 1000
"""Of one context; beyond that, all are forgotten."""
KEYS_AT_ONCE_MIN = 64
"""Of so many keys that are one list, the packets are made all at once, and none is kept."""
SEEN_MAX = 100_000
LOOK_ALIKE = ("i", "s", "n", "date", "time")
"""The codes of types of which equal values look the same."""

Array = np.ndarray[Any, Any]
Parameters = tuple[Value, ...]
Statement = tuple[str, tuple[str, ...], bool]
"""A template or a prepared text, the codes of its parameters' types, whether the result is binary."""


class Shortcut:
    __slots__ = (
        "_assemble", "_batch", "_count", "_encode", "_entries", "_find", "_form", "_is_computed", "_is_kept", "_packets", "_places",
        "_query", "_rows", "_shortcuts", "answer", "counted", "moment", "takes_list",
    )  # fmt: skip

    def __init__(
        self, shortcuts: Shortcuts, context: Context, query: InstantQuery, format: ResultFormat, statement: Statement, counted: CountedStatement
    ) -> None:
        _, codes, binary = statement
        self.counted = counted
        self._shortcuts = shortcuts
        self._query = query
        self._find = query.found
        self.moment = query.moment
        self._is_computed = query.has_computed_keys
        self._rows = query.rows
        self._encode = format.whole(context.status, context.deprecate_eof, binary)
        self._places = query.places_read
        # Of other types than these, equal values may look different.
        self._is_kept = all(codes[place].startswith(LOOK_ALIKE) for place in self._places)
        self._packets = partial(format.row_packets, binary=binary)
        self._assemble = format.assembled(context.status, context.deprecate_eof) if query.is_row_by_row else None
        self._form = shortcuts.form((context, binary, query.row_form)) if query.is_row_by_row else None
        self._count = len(codes)
        self.takes_list = query.is_list(self._count)
        """The parameters are keys, all of them."""
        is_long = self.takes_list and self._count >= KEYS_AT_ONCE_MIN
        self.answer: Callable[[Parameters], Answer | None] = self._answer_keys if is_long else self.answer_each
        """With packets, and what FOUND_ROWS() is after them; None if the statement has to be executed."""
        self._entries = query.entries
        self._batch = None
        cells = query.cells
        if cells is not None:
            self._batch = format.batched(context.status, context.deprecate_eof, binary, cells, query.node_types)

    def _answer_keys(self, parameters: Parameters) -> Answer | None:
        return self.answer_batch(np.array(parameters, np.int64)) or self.answer_each(parameters)

    def answer_each(self, parameters: Parameters) -> Answer | None:
        """As `answer`, not by making the packets of many keys at once."""
        if self._is_computed:
            listen()
        found = self._find(parameters)
        if found is None or (self._is_computed and not is_silent()):
            return None
        if self._assemble is not None and isinstance(found, tuple) and len(found) >= KEYS_APART_MIN:
            return self._assembled(found, parameters)
        name: tuple[object, ...] = (self, found)
        if self._places:
            name = (self, found, *[parameters[place] for place in self._places])
        cache = self._shortcuts.packets
        return cache.young.get(name) or cache.get(name) or self._made(name, found, parameters)

    def ask(self, parameters: Parameters, then: Callable[[Found | None], None]) -> bool:
        """After `answer` has found nothing: ask the worker, and go on with `then` and `arrived`; False if that is not possible."""
        return not (self._is_computed and not is_silent()) and self._query.ask(parameters, then)

    def arrived(self, found: Found, parameters: Parameters) -> Answer | None:
        """As `answer`, of what was asked for. It is not kept: it may never be asked for again."""
        listen()
        rows, count = self._rows(found, parameters)
        return (self._encode(rows), count) if is_silent() else None

    def answer_batch(self, numbers: Array) -> Answer | None:
        """As `answer`, of many keys that are these numbers; None if they are few, or not all known."""
        if self._batch is None or len(numbers) < KEYS_AT_ONCE_MIN:
            return None
        entries = self._entries(numbers)
        return self._batch(entries) if entries is not None and entries.is_known else None

    def _assembled(self, found: tuple[bytes, ...], parameters: Parameters) -> Answer | None:
        assert self._assemble is not None
        listen()
        made = self._assemble(self._kept_rows(found, parameters))
        return made if is_silent() else None

    def _kept_rows(self, found: tuple[bytes, ...], parameters: Parameters) -> Iterator[RowPackets]:
        """The packets of each key's rows: the same many keys never come again, but each of them does."""
        cache = self._shortcuts.rows
        for each in found:
            name = (self._form, each)
            kept = cache.young.get(name) or cache.get(name)
            if kept is None:
                kept = self._packets(self._rows(each, parameters)[0])
                if is_silent():
                    cache.put(name, kept)
            yield kept

    def _made(self, name: tuple[object, ...], found: Found, parameters: Parameters) -> Answer | None:
        listen()
        rows, count = self._rows(found, parameters)
        if not is_silent():
            return None
        made = (self._encode(rows), count)
        if self._is_kept and len(made[0]) <= ANSWER_BYTES_MAX:
            self._shortcuts.packets.put(name, made)
        return made


class Context:
    """What sessions have in common that get the same bytes for the same statements."""

    def __init__(self, shortcuts: Shortcuts, catalog: Catalog, session: Session, capabilities: int) -> None:
        self._shortcuts = shortcuts
        self.catalog: Catalog | None = catalog
        """None: it is a context no more."""
        self.status = session.status
        self.deprecate_eof = bool(capabilities & packets.DEPRECATE_EOF)
        self.query_attributes = bool(capabilities & packets.QUERY_ATTRIBUTES)
        self.settings: Settings = session.settings
        self._statements: dict[Statement, Shortcut | None] = {}
        self.preparations = Preparations()
        self._shapes: dict[Shape, Shortcut | WriteShortcut] = {}
        self._writes: dict[tuple[Statement, Modes], WriteShortcut | None] = {}

    def known_shape(self, shape: Shape, session: Session) -> Shortcut | WriteShortcut | None:
        """What answers texts of this shape, if one was learnt."""
        known = self._shapes.get(shape)
        return None if isinstance(known, WriteShortcut) and known.modes != session.modes else known

    def learn_shape(self, read: ReadText, shortcut: Shortcut | WriteShortcut, parameters: Parameters) -> bool:
        """A text is answered by this shortcut with these parameters: so are others of its shape, if it is read as all of these are, which is returned."""
        if not read.is_read_as(parameters):
            return False
        if len(self._shapes) >= SHAPES_MAX:
            self._shapes.clear()
        self._shapes[read.shape] = shortcut
        return True

    def shortcut(self, statement: Statement, session: Session, sql: str) -> Shortcut | None:
        """The statement's shortcut, if it can have one and is not here for the first time."""
        known = self._statements
        if statement in known:
            return known[statement]
        if len(statement[0]) > STATEMENT_LENGTH_MAX or self._shortcuts.statements_seen.is_new(statement):
            return None
        self._shortcuts.make_room()
        made = known[statement] = self._made(statement, session, sql)
        return made

    def write(self, statement: Statement, session: Session, sql: str) -> WriteShortcut | None:
        """The same of a write of one row, where `shortcut` has said None."""
        name = (statement, session.modes)
        if name in self._writes:
            return self._writes[name]
        if statement not in self._statements:
            if len(statement[0]) > STATEMENT_LENGTH_MAX or self._shortcuts.statements_seen.is_new(statement):
                return None
            self._shortcuts.make_room()
            self._statements[statement] = None
        plan = self._plan(statement, session, sql)
        made = self._writes[name] = None if plan is None else write_shortcut(session, plan, sql, statement[2])
        return made

    def end(self) -> None:
        """Whoever still has it looks for another."""
        self.catalog = None
        self._statements.clear()
        self._writes.clear()
        self._shapes.clear()
        self.preparations.clear()

    def _made(self, statement: Statement, session: Session, sql: str) -> Shortcut | None:
        plan = self._plan(statement, session, sql)
        query = None if plan is None else session.environment.database.instant(plan)
        if query is None:
            return None
        assert plan is not None
        counted = session.environment.statements.of(plan, sql, session.database, is_prepared=statement[2])
        return Shortcut(self._shortcuts, self, query, session.format(query.columns), statement, counted)

    def _plan(self, statement: Statement, session: Session, sql: str) -> Plan | None:
        """The plan of a statement that the session may execute."""
        plans, catalog = session.environment.plans, session.environment.catalog()
        text, codes, is_prepared = statement
        try:
            if is_prepared:
                plan: Plan = plans.plan_prepared(text, catalog, session.database, self.settings, codes)
            else:
                plan, _ = plans.plan_text(sql, catalog, session.database, self.settings)
            check_plan(session, plan, sql)
        except MillraceError:
            return None
        return plan


class Shortcuts:
    """Those of one adapter process."""

    def __init__(self, database: DatabaseFace) -> None:
        self._database = database
        self._catalog: Catalog | None = None
        self._contexts: dict[tuple[object, ...], Context] = {}
        self.statements_seen = Seen(SEEN_MAX)
        self._statement_count = 0
        self.answered = 0
        self._is_off = False
        self.packets: BoundedCache[tuple[object, ...], Answer] = BoundedCache(PACKETS_BYTES_MAX, _packets_bytes)
        self._forms: dict[tuple[object, ...], object] = {}
        self.standing = StandingAnswers()
        self.rows: BoundedCache[tuple[object, bytes], RowPackets] = BoundedCache(PACKETS_BYTES_MAX, _rows_bytes)
        self.texts: BoundedCache[tuple[Context, bytes], tuple[Shortcut, Parameters]] = BoundedCache(
            TEXTS_BYTES_MAX, _text_bytes
        )

    def form(self, name: tuple[object, ...]) -> object:
        """What stands for `name`: statements that differ only in how many keys they ask for have the same packets of rows."""
        return self._forms.setdefault(name, object())

    def prepared(self, session: Session, capabilities: int, text: bytes, prepared: Prepared, payloads: Sequence[bytes]) -> None:
        """This text was prepared; `payloads` are its answer without the first."""
        context = self.context(session, capabilities) if prepared.planned else None
        if context is not None:
            context.preparations.keep(text, Preparation(prepared, payloads))

    def context(self, session: Session, capabilities: int) -> Context | None:
        """The session's context as it is now; None if its statements have to be executed."""
        if self._is_off:
            return None
        transaction = session.transaction
        if transaction is None:
            # The first statement without autocommit begins a transaction, and any takes SET TRANSACTION's word.
            if not session.autocommit or session.next_transaction:
                return None
        elif not transaction.may_use_views:
            return None
        if session.settings.owner or session.account.expired or session.select_limit is not None or session.table_locks is not None:
            return None
        catalog = self._database.catalog
        if catalog is not self._catalog:
            self._forget()
            self._catalog = catalog
        name = (
            session.account.name,
            session.roles,
            session.database,
            session.settings,
            session.results_collation_id,
            session.results_codec,
            session.client_codec,
            session.status,
            capabilities & (packets.DEPRECATE_EOF | packets.QUERY_ATTRIBUTES),
        )
        found = self._contexts.get(name)
        if found is None:
            if len(self._contexts) >= CONTEXTS_MAX:
                self._forget()
            found = self._contexts[name] = Context(self, catalog, session, capabilities)
        return found

    def turn(self, off: bool) -> None:
        """While they are off, all statements are executed."""
        self._is_off = off
        self._forget()

    def make_room(self) -> None:
        """There is going to be another statement."""
        if self._statement_count >= STATEMENTS_MAX:
            self._forget()
        self._statement_count += 1

    def _forget(self) -> None:
        for context in self._contexts.values():
            context.end()
        self._contexts.clear()
        self._statement_count = 0
        self.packets.clear()
        self.rows.clear()
        self._forms.clear()
        self.standing.clear()
        self.texts.clear()


def _packets_bytes(name: tuple[object, ...], answer: Answer) -> int:
    size = 400 + len(answer[0])
    for each in name[1:]:
        if isinstance(each, bytes | str):
            size += len(each)
        elif isinstance(each, tuple):
            size += sum(map(len, each)) + 40 * len(each)
    return size


def _rows_bytes(name: tuple[object, bytes], rows: RowPackets) -> int:
    return 300 + len(name[1]) + sum([200 + len(payload) for _, payload in rows])


def _text_bytes(name: tuple[Context, bytes], meaning: tuple[Shortcut, Parameters]) -> int:
    return 400 + len(name[1]) + 60 * len(meaning[1])
