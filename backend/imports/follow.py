"""Row changes of the source's binlog, from the import's snapshot on, until the user switches over.

Transactions of the source are applied in their order, several as one transaction of the target together with the binlog's position in the
journal: each change is applied once, whatever is killed. Changes of tables with a primary key put the whole row, or delete it by its key, so
applying what a later snapshot has seen already changes nothing. Rows of a table without a key are found by all of their values.
"""

from __future__ import annotations

import datetime
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from backend.imports.columns import ImportedTable, describe
from backend.imports.journal import BINLOG_UNIT, DATABASE, Journal, Mark
from backend.imports.live import LivePlan
from backend.imports.loader import Loader
from backend.imports.mysql_source import Binlog, LiveSource
from backend.imports.server import CannotImport, error_of, rows_of
from backend.network.server_address import ServerAddress
from controller.sql.text.lexer import quoted

CHANGES_AT_ONCE = 500
PAUSE_S = 0.2
WANTED = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
_DEFINES = ("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE")
_DEFINED = ("TABLE", "VIEW", "INDEX", "UNIQUE", "OR", "DATABASE", "SCHEMA", "COLUMN")
_NO_PARENT = frozenset({1216, 1452})
_EPOCH = datetime.datetime(1970, 1, 1)

Image = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row comes (`after`), goes (`before`), or becomes another (both)."""

    table: str
    before: Image | None
    after: Image | None


def check_binlog(source: LiveSource) -> None:
    """Raises CannotImport if the source does not write down what has to be known."""
    found = {str(name).lower(): str(value).upper() for name, value in rows_of(source.main, "SHOW GLOBAL VARIABLES WHERE variable_name LIKE 'log_bin' OR variable_name LIKE 'binlog_%'")}
    wrong = [f"{name} = {value}" for name, value in WANTED.items() if found.get(name) not in (value, "1" if value == "ON" else value)]
    if wrong:
        raise CannotImport(f"--follow needs a source with {', '.join(wrong)}")


class Following:
    """`told` is called with the number of changes that were applied."""

    def __init__(
        self, source: LiveSource, target: ServerAddress, journal: Journal, plan: LivePlan, told: Callable[[int], object]
    ) -> None:
        if plan.binlog is None:
            raise CannotImport("the snapshot has no place in the binlog: --follow needs a source with a binlog, and the privileges RELOAD and REPLICATION CLIENT")
        assert target.database is not None
        self._source = source
        self._journal = journal
        self._told = told
        self._moments = {table: Binlog.parse(moment) for table, moment in plan.moments.items() if moment}
        self._loader = Loader(target, journal, lambda stored, rejected: None)
        self._loader.session.append("SET foreign_key_checks = 1")  # changes that a foreign key makes are not in the binlog
        rows_of(self._loader.connection, self._loader.session[0])
        self._mark = journal.marks(self._loader.connection).get(BINLOG_UNIT, Mark(place=plan.binlog))
        self._converges_until = source.binlog() or Binlog.parse(plan.binlog)
        tables = {name: describe(self._loader.connection, target.database, name) for name in plan.tables}
        self._tables = {name: table for name, table in tables.items() if table is not None}

    @property
    def place(self) -> Binlog:
        return Binlog.parse(self._mark.place)

    def run(self, stop: threading.Event) -> Binlog:
        """Until `stop` is set and all is applied that the source had written by then; where that is."""
        until: Binlog | None = None
        try:
            while True:
                if stop.is_set() and until is None:
                    until = self._source.binlog()
                self._catch_up()
                if until is not None and not self.place.is_before(until):
                    return self.place
                if until is None:
                    stop.wait(PAUSE_S)
        finally:
            self._loader.close()

    def _catch_up(self) -> None:
        """Apply what is in the binlog now."""
        changes: list[RowChange] = []
        end = self.place
        for end, made in self._transactions():
            changes += made
            if len(changes) >= CHANGES_AT_ONCE:
                self._apply(changes, end)
                changes = []
        if changes or end != self.place:
            self._apply(changes, end)

    def _transactions(self) -> Iterator[tuple[Binlog, list[RowChange]]]:
        """Whole transactions of the source after the present place, with the place behind each."""
        address, place = self._source.address, self.place
        stream = BinLogStreamReader(
            connection_settings={"host": address.host, "port": address.port, "user": address.user, "password": address.password}
            | address.tls_options,
            server_id=random.randrange(1 << 30, 1 << 31),
            log_file=place.file,
            log_pos=place.position,
            resume_stream=True,
            only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, QueryEvent, XidEvent],
            enable_logging=False,
        )
        made: list[RowChange] = []
        try:
            for event in stream:
                end = Binlog(stream.log_file, stream.log_pos)
                if isinstance(event, QueryEvent):
                    query = _text(event.query)
                    if query.strip().upper() == "COMMIT":
                        yield end, made
                        made = []
                    elif _text(event.schema) == self._source.database:
                        self._check_query(query, end)
                elif isinstance(event, XidEvent):
                    yield end, made
                    made = []
                elif event.schema == self._source.database and event.table in self._tables:
                    moment = self._moments.get(event.table)
                    if moment is None or moment.is_before(end):
                        made += [self._change(event, row) for row in event.rows]
        finally:
            stream.close()

    def _check_query(self, query: str, end: Binlog) -> None:
        words = query.upper().split()[:2]
        if len(words) == 2 and words[0] in _DEFINES and words[1] in _DEFINED:
            raise CannotImport(f"the source's schema was changed at {end}, which is not followed: {query[:200]}")

    # Values

    def _change(self, event: Any, row: Mapping[str, Any]) -> RowChange:
        table = self._tables[event.table]
        if isinstance(event, UpdateRowsEvent):
            before = self._image(table, row["before_values"], row["before_none_sources"])
            return RowChange(event.table, before, self._image(table, row["after_values"], row["after_none_sources"]))
        image = self._image(table, row["values"], row["none_sources"])
        return RowChange(event.table, None, image) if isinstance(event, WriteRowsEvent) else RowChange(event.table, image, None)

    def _image(self, table: ImportedTable, values: Image, nothing: Mapping[str, str]) -> Image:
        return {each.name: _value(each.kind, values[each.name], nothing.get(each.name, "")) for each in table.columns}

    # Statements

    def _apply(self, changes: Sequence[RowChange], end: Binlog) -> None:
        after = Mark(self._mark.step + 1, str(end), self._mark.stored + len(changes))
        job = self._journal.job
        statements = [sql for change in changes for sql in self._statements(change)]
        statements.append(f"DELETE FROM {DATABASE}.steps WHERE job = '{job}' AND unit = '{BINLOG_UNIT}' AND step < {after.step}")
        try:
            self._loader.execute(BINLOG_UNIT, after, statements)
        except pymysql.MySQLError as error:
            if error_of(error)[0] not in _NO_PARENT or not self.place.is_before(self._converges_until):
                raise
            # A later snapshot has no such parent any more; what becomes of the row comes later in the binlog.
            self._loader.execute(BINLOG_UNIT, after, ["SET foreign_key_checks = 0", *statements])
            rows_of(self._loader.connection, "SET foreign_key_checks = 1")
        self._mark = after
        self._told(len(changes))

    def _statements(self, change: RowChange) -> list[str]:
        table = self._tables[change.table]
        name, escape = table.qualified, self._loader.connection.escape
        columns = [quoted(each.name) for each in table.columns]

        def row(image: Image) -> list[str]:
            return [escape(image[each.name]) for each in table.columns]

        def where(image: Image) -> str:
            places = table.key or range(len(columns))
            same = [f"{columns[place]} <=> {row(image)[place]}" for place in places]
            return " WHERE " + " AND ".join(same) + ("" if table.key else " LIMIT 1")

        def put(image: Image) -> str:
            update = f" ON DUPLICATE KEY UPDATE {', '.join(f'{each} = VALUES({each})' for each in columns)}" if table.key else ""
            return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join(row(image))}){update}"

        def changed(before: Image, image: Image) -> str:
            return f"UPDATE {name} SET {', '.join(f'{each} = {value}' for each, value in zip(columns, row(image)))}{where(before)}"

        match change.before, change.after:
            case None, after if after is not None:
                return [put(after)]
            case before, None if before is not None:
                return [f"DELETE FROM {name}{where(before)}"]
            case before, after if before is not None and after is not None:
                if not table.key:
                    return [changed(before, after)]
                key = [table.columns[place].name for place in table.key]
                moves = any(before[each] != after[each] for each in key)
                return [*([changed(before, after)] if moves else []), put(after)]
        raise AssertionError(change)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _value(kind: str, value: Any, nothing: str) -> Any:
    """A value of the library as one for SQL; `nothing` says why it is None."""
    if value is None:
        if nothing.startswith("out of"):
            raise CannotImport("a date such as 0000-00-00 was written, which the binlog's reader does not tell from others: it is not followed")
        return "" if nothing == "empty set" else None
    if kind == "bit":
        return int(value, 2)
    if kind == "year":
        return 0 if value == 1900 else value
    if kind == "timestamp" and value == _EPOCH:
        return "0000-00-00 00:00:00"
    if isinstance(value, set):
        return ",".join(_text(each) for each in value)
    if isinstance(value, dict | list) or (kind == "json" and not isinstance(value, str | bytes)):
        return json.dumps(value, default=_text)
    if isinstance(value, bytes) and kind in ("json", "enum", "longtext"):
        return _text(value)
    return value
