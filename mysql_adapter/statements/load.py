"""LOAD DATA LOCAL INFILE: the client sends a file, its rows are inserted in batches.

As in MySQL, LOCAL means IGNORE unless REPLACE is said: what does not fit is made to fit with a
warning, because the client cannot be stopped. Outside of a transaction each batch is one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backend.execution.outcome import Done, Warning
from backend.execution.pace import breathe, parts
from controller.privileges import check_needs, check_plan
from controller.sql.plan import Insert, Plan
from controller.sql.references import Need
from controller.sql.text.lexer import TokenKind, tokens
from controller.sql.writing.updatable_views import loaded_table
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.schema import Table
from dataflow.values.types import BLOBS, NUMBERS, STRINGS, Value
from mysql_adapter.sessions.facts import fact
from mysql_adapter.sessions.infile import FieldReader, Fields, Format
from mysql_adapter.sessions.planned import settings_for
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.wire.charsets import charset_of
from mysql_adapter.wire.packets import CAN

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

BATCH_ROWS = 2_000
BATCH_CHARACTERS = 4 << 20
CHUNK_BYTES = 256 * 1024
WARNINGS_MAX = 1024
_AT_ROW = re.compile(r" at row (\d+)$")


@dataclass(slots=True)
class Load:
    """`targets` are columns, or user variables as `@name`; `assignments` are (column, expression)."""

    file: str
    database: str
    table: str
    replaces: bool = False
    codec: str = "utf-8"
    format: Format = field(default_factory=Format)
    targets: list[str] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)


async def load_data(session: Session, cursor: TokenCursor) -> Done:
    load = _read(session, cursor)
    named = frozenset([*(each for each in load.targets if not each.startswith("@")), *(column for column, _ in load.assignments)])
    needs = [Need("INSERT", load.database, load.table, columns=named if load.targets else None)]
    if load.replaces:
        needs.append(Need("DELETE", load.database, load.table))
    check_needs(session, needs)
    stream = session.connection.stream
    if not session.environment.globals.get("local_infile") or not stream.capabilities & CAN.CLIENT_LOCAL_FILES:
        raise InvalidStatement(Condition.LOCAL_INFILE_DISABLED)
    table, names = await session.environment.with_catalog(lambda catalog: loaded_table(catalog, load.database, load.table))
    load.targets = load.targets or list(names)
    loading = _Loading(session, load, table, names)
    loading.plan(len(load.targets))  # what is wrong with the statement is said before the file is asked for
    stream.send(b"\xfb" + load.file.encode(session.client_codec, "replace"))
    failure: MillraceError | None = None
    pending = bytearray()
    while data := await stream.receive():
        if failure is None:
            pending += data
            if len(pending) >= CHUNK_BYTES:
                try:
                    await loading.add(loading.reader.feed(bytes(pending)))
                except MillraceError as error:
                    failure = error  # the client goes on sending until the end
                pending.clear()
    if failure is not None:
        raise failure
    await loading.add(loading.reader.feed(bytes(pending)))
    await loading.add(loading.reader.finish())
    return await loading.finish()


class _Loading:
    def __init__(self, session: Session, load: Load, table: Table, names: dict[str, str]) -> None:
        self.reader = FieldReader(load.format, load.codec)
        self._session = session
        self._load = load
        self._columns = {each: column for each, own in names.items() for column in table.columns if column.name == own}
        self._plans: dict[int, tuple[Plan, list[int]]] = {}
        self._rows: list[Fields] = []
        self._width = -1
        self._characters = 0
        self._records = self._affected = 0
        self._warnings: list[Warning] = []
        self._warning_count = 0

    def plan(self, width: int) -> tuple[Plan, list[int]]:
        """The INSERT for rows with so many fields, and which field each of its parameters is."""
        found = self._plans.get(width)
        if found is not None:
            return found
        targets = self._load.targets[:width]
        names: list[str] = []
        values: list[str] = []
        places: list[int] = []
        codes: list[str] = []
        assigned = {name.lower() for name, _ in self._load.assignments}
        for place, target in enumerate(targets):
            if not target.startswith("@") and target.lower() not in assigned:
                names.append(target)
                values.append("?")
                places.append(place)
                codes.append("n")
        for target in self._load.targets[width:]:
            zero = None if target.startswith("@") or target.lower() in assigned else self._zero(target)
            if zero is not None:
                names.append(target)
                values.append(zero)
        for name, expression in self._load.assignments:
            written, used = self._with_parameters(expression, targets)
            names.append(name)
            values.append(written)
            places += used
            codes += ["s32"] * len(used)
        verb = "REPLACE" if self._load.replaces else "INSERT IGNORE"
        columns = ", ".join(f"`{name.replace('`', '``')}`" for name in names)
        owner = f"`{self._load.database.replace('`', '``')}`.`{self._load.table.replace('`', '``')}`"
        sql = f"{verb} INTO {owner} ({columns}) VALUES ({', '.join(values)})"
        session = self._session
        catalog = session.environment.catalog()
        plan = session.environment.plans.plan_prepared(sql, catalog, session.database, settings_for(session, sql), tuple(codes))
        check_plan(session, plan, sql)  # what SET reads
        if places and isinstance(plan.statement, Insert) and plan.statement.before is None:  # subqueries are evaluated for each row
            plan = replace(plan, batch=(0, len(places)))
        self._plans[width] = (plan, places)
        return plan, places

    def _zero(self, name: str) -> str | None:
        """What MySQL puts into a column whose field is missing; None to leave it out."""
        column = next((column for each, column in self._columns.items() if each.lower() == name.lower()), None)
        if column is None or (column.nullable and column.default is None):
            return None
        kind = column.type.kind
        return "0" if kind in NUMBERS else "''" if kind in STRINGS | BLOBS else None

    def _with_parameters(self, expression: str, targets: list[str]) -> tuple[str, list[int]]:
        """`expression` with a parameter for each variable that is a field; fields that are missing are NULL."""
        pieces: list[str] = []
        used: list[int] = []
        position = 0
        known = [each.lower() for each in targets]
        all_known = [each.lower() for each in self._load.targets]
        for token in tokens(expression, self._session.settings.ansi_quotes, self._session.settings.backslash_escapes):
            name = token.text.lower().replace("`", "")
            if token.kind is not TokenKind.VARIABLE or name not in all_known:
                continue
            pieces.append(expression[position : token.start])
            pieces.append("?" if name in known else "NULL")
            if name in known:
                used.append(known.index(name))
            position = token.end
        return "".join([*pieces, expression[position:]]), used

    async def add(self, rows: Iterator[Fields]) -> None:
        wanted = len(self._load.targets)
        for fields in rows:
            breathe()
            width = min(len(fields), wanted)
            number = self._records + len(self._rows) + 1
            if width != self._width:
                await self._flush()
                self._width = width
            for _ in range(width, wanted):
                self._warn(Condition.ROW_TOO_SHORT, number)
            if len(fields) > wanted:
                self._warn(Condition.ROW_TOO_LONG, number)
            self._rows.append(fields)
            self._characters += sum(len(each) for each in fields if each is not None)
            if len(self._rows) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS:
                await self._flush()

    def _warn(self, condition: Condition, number: int) -> None:
        self._warning_count += 1
        if len(self._warnings) < WARNINGS_MAX:
            self._warnings.append(Warning("Warning", condition.code, condition.template.format(number)))

    async def _flush(self) -> None:
        rows, self._rows, self._characters = self._rows, [], 0
        if not rows:
            return
        session, database = self._session, self._session.environment.database
        plan, places = self.plan(self._width)
        modes = session.modes.ignoring()
        values: list[Value] = [_value(row[place]) for part in parts(rows) for row in part for place in places]
        facts = [fact(session, name) for name in plan.facts]
        if plan.batch is not None:
            runs = [[*values, *facts]]
        else:
            runs = [[*values[at : at + len(places)], *facts] for at in range(0, len(places) * len(rows), len(places))] if places else [facts] * len(rows)
        for given in runs:
            done = await database.execute(plan, given, session.statement_transaction(), modes)
            assert isinstance(done, Done)
            self._affected += done.affected
            self._warning_count += len(done.warnings)
            self._warnings += [self._numbered(each) for each in done.warnings][: WARNINGS_MAX - len(self._warnings)]
        self._records += len(rows)
        for target, text in zip(self._load.targets, rows[-1]):
            if target.startswith("@"):
                session.user_variables[target[1:].lower()] = _value(text)

    def _numbered(self, warning: Warning) -> Warning:
        """Rows are counted from the start of the file, not of the batch."""
        message = _AT_ROW.sub(lambda match: f" at row {int(match[1]) + self._records}", warning.message)
        return replace(warning, message=message)

    async def finish(self) -> Done:
        await self._flush()
        deleted = max(self._affected - self._records, 0)
        skipped = max(self._records - self._affected, 0)
        info = f"Records: {self._records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {self._warning_count}"
        return Done(self._affected, self._affected, info=info, warnings=tuple(self._warnings))


def _value(text: str | None) -> Value:
    """Bytes that were no text stay bytes, for columns that take any."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")
    return text


# --- the statement


def _read(session: Session, cursor: TokenCursor) -> Load:
    cursor.expect("LOAD", "DATA")
    cursor.accept_any("LOW_PRIORITY", "CONCURRENT")
    if not cursor.accept("LOCAL"):
        raise InvalidStatement(Condition.SECURE_FILES)
    cursor.expect("INFILE")
    file = cursor.string()
    replaces = cursor.accept_any("REPLACE", "IGNORE") == "REPLACE"
    cursor.expect("INTO", "TABLE")
    database, table = cursor.qualified_name()
    owner = database or session.database
    if not owner:
        raise InvalidStatement(Condition.NO_DB_SELECTED)
    load = Load(file, owner, table, replaces)
    load.codec = _codec(cursor, str(session.variables.get("character_set_database")))
    load.format = _format(cursor)
    if cursor.accept("("):
        while not cursor.accept(")"):
            is_variable = cursor.token.kind is TokenKind.VARIABLE
            load.targets.append(cursor.next().text.replace("`", "") if is_variable else cursor.identifier())
            if not cursor.accept(",") and not cursor.at(")"):
                raise cursor.error()
    if cursor.accept("SET"):
        while True:
            _, name = cursor.qualified_name()
            cursor.expect("=")
            load.assignments.append((name, cursor.expression(",")))
            if not cursor.accept(","):
                break
    cursor.expect_end()
    return load


def _codec(cursor: TokenCursor, default: str) -> str:
    name = default
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        name = cursor.word_or_string()
    charset = charset_of(name)
    if charset is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, name)
    return charset.codec


def _format(cursor: TokenCursor) -> Format:
    format = Format()
    if cursor.accept_any("FIELDS", "COLUMNS"):
        while cursor.at_any("TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"):
            if cursor.accept("TERMINATED", "BY"):
                format = replace(format, field_end=_text(cursor))
            elif cursor.accept("ESCAPED", "BY"):
                format = replace(format, escape=_character(cursor))
            else:
                cursor.accept("OPTIONALLY")
                cursor.expect("ENCLOSED", "BY")
                format = replace(format, enclosure=_character(cursor))
    if cursor.accept("LINES"):
        while cursor.at_any("STARTING", "TERMINATED"):
            if cursor.accept("STARTING", "BY"):
                format = replace(format, line_start=_text(cursor))
            else:
                cursor.expect("TERMINATED", "BY")
                format = replace(format, line_end=_text(cursor))
    if cursor.accept("IGNORE"):
        format = replace(format, lines_skipped=cursor.integer())
        if not cursor.accept_any("LINES", "ROWS"):
            raise cursor.error()
    return format


def _text(cursor: TokenCursor) -> str:
    value = cursor.literal()
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _character(cursor: TokenCursor) -> str:
    text = _text(cursor)
    if len(text) > 1:
        raise InvalidStatement(Condition.WRONG_FIELD_TERMINATORS)
    return text
