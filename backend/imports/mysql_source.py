"""A live MySQL or MariaDB as a source: its schema, and its rows as of one moment.

Several connections take their snapshots while FLUSH TABLES WITH READ LOCK holds writers off for a moment, and the binlog's position
is that of the same moment. Without the privilege for that (RELOAD) one connection reads all tables: its snapshot is one moment
by itself. A table is read by ranges of the first column of its primary key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pymysql
from pymysql.converters import escape_string
from pymysql.cursors import SSCursor

from backend.imports.columns import ImportedTable, describe
from backend.imports.server import rows_of
from backend.network.server_address import ServerAddress
from controller.sql.text.lexer import quoted

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_NUMBERS = _INTEGERS | {"decimal", "year", "float", "double"}
_DENIED = frozenset({1044, 1045, 1142, 1227, 1290})
_NO_SYNTAX = 1064
_DEFINER = re.compile(r"\bDEFINER\s*=\s*(?:`(?:[^`]|``)*`|[^@\s]+)\s*@\s*(?:`(?:[^`]|``)*`|\S+)\s*", re.IGNORECASE)
UNIT_ROWS_MIN = 50_000
"""Smaller tables are read by one connection."""
RawRow = tuple[str | bytes | None, ...]


@dataclass(frozen=True, slots=True)
class KeyRangeUnit:
    """Rows of a table from `low` up to, without, `high`: literals for the first column of its primary key, or None."""

    name: str
    table: str
    low: str | None
    high: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class Binlog:
    """A place in the source's binlog."""

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"

    @classmethod
    def parse(cls, text: str) -> Binlog:
        file, _, position = text.rpartition(":")
        return cls(file, int(position))

    def is_before(self, other: Binlog) -> bool:
        return (self.number, self.position) < (other.number, other.position)

    @property
    def number(self) -> int:
        """Files of a binlog are numbered."""
        return int(self.file.rpartition(".")[2])


class LiveSource:
    def __init__(self, address: ServerAddress) -> None:
        assert address.database is not None
        self.address = address
        self.database = address.database
        self.main = address.connect()
        rows_of(self.main, "SET SESSION sql_mode = ''")

    def close(self) -> None:
        self.main.close()

    # Schema

    def tables(self) -> dict[str, int]:
        """Names of the tables, and about how many rows each has."""
        sql = "SELECT table_name, table_rows FROM information_schema.tables WHERE table_schema = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        return {name: int(rows or 0) for name, rows in rows_of(self.main, sql + " ORDER BY table_name", (self.database,))}

    def table_sql(self, table: str) -> str:
        return str(rows_of(self.main, f"SHOW CREATE TABLE {quoted(table)}")[0][1])

    def views(self) -> dict[str, str]:
        """The statements that make the views."""
        names = rows_of(self.main, "SELECT table_name FROM information_schema.views WHERE table_schema = %s", (self.database,))
        return {name: _DEFINER.sub("", str(rows_of(self.main, f"SHOW CREATE VIEW {quoted(name)}")[0][1])) for (name,) in names}

    def database_options(self) -> str:
        sql = "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name = %s"
        found = rows_of(self.main, sql, (self.database,))
        if not found:
            raise ValueError(f"{self.address}: there is no such database")
        return "CHARACTER SET {} COLLATE {}".format(*found[0])

    def left_out(self) -> list[str]:
        """What the database has besides, in words."""
        queries = {
            "trigger": "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = %s",
            "routine": "SELECT routine_name FROM information_schema.routines WHERE routine_schema = %s",
            "event": "SELECT event_name FROM information_schema.events WHERE event_schema = %s",
            "sequence": "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'SEQUENCE'",
        }
        found = [f"{kind} {name}" for kind, sql in queries.items() for (name,) in rows_of(self.main, sql, (self.database,))]
        unsafe = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s AND engine NOT IN ('InnoDB', 'SEQUENCE')"
        moments = [f"{name} ({engine})" for name, engine in rows_of(self.main, unsafe, (self.database,))]
        return found + ([f"one moment for tables that know no snapshots: {', '.join(moments)}"] if moments else [])

    # Snapshots

    def snapshots(self, count: int) -> tuple[list[Any], Binlog | None]:
        """Connections that see the same moment, at most `count`, and the binlog's position then."""
        try:
            rows_of(self.main, "FLUSH TABLES WITH READ LOCK")
        except pymysql.MySQLError as error:
            if error.args[0] not in _DENIED:
                raise
            return [self._snapshot()], None
        try:
            found = [self._snapshot() for _ in range(count)]
            return found, self.binlog()
        finally:
            rows_of(self.main, "UNLOCK TABLES")

    def _snapshot(self) -> Any:
        connection = self.address.connect(cursorclass=SSCursor, conv={}, sql_mode="")
        for sql in (
            "SET SESSION net_write_timeout = 86400",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        ):
            rows_of(connection, sql)
        return connection

    def binlog(self) -> Binlog | None:
        """Where the binlog ends now; None if there is none, or one may not ask."""
        for sql in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
            try:
                found = rows_of(self.main, sql)
                return Binlog(str(found[0][0]), int(found[0][1])) if found else None
            except pymysql.MySQLError as error:
                if error.args[0] in _DENIED:
                    return None
                if error.args[0] != _NO_SYNTAX:
                    raise
        return None

    # Rows

    def units(self, table: str, rows: int, parts: int) -> list[KeyRangeUnit]:
        """Ranges of about the same size."""
        described = self.described(table)
        whole = [KeyRangeUnit(f"{table}/0", table, None, None, rows)]
        if parts < 2 or rows < UNIT_ROWS_MIN or not described.key:
            return whole
        column = described.columns[described.key[0]]
        name, owner = quoted(column.name), quoted(table)
        if column.kind in _INTEGERS:
            low, high = rows_of(self.main, f"SELECT MIN({name}), MAX({name}) FROM {owner}")[0]
            if low is None or high - low < parts:
                return whole
            bounds = [str(low + (high - low + 1) * place // parts) for place in range(1, parts)]
        else:
            keys = ", ".join(quoted(described.columns[place].name) for place in described.key)
            found: list[str] = []
            for place in range(1, parts):
                sql = f"SELECT {name} FROM {owner} ORDER BY {keys} LIMIT 1 OFFSET {rows * place // parts}"
                found += [literal(column.kind, each) for (each,) in rows_of(self.main, sql)]
            bounds = list(dict.fromkeys(found))
        edges: list[str | None] = [None, *bounds, None]
        return [
            KeyRangeUnit(f"{table}/{place}", table, low, high, rows // len(edges[1:]))
            for place, (low, high) in enumerate(pairwise(edges))
        ]

    def described(self, table: str) -> ImportedTable:
        found = describe(self.main, self.database, table)
        assert found is not None
        return found

    def read(self, connection: Any, table: ImportedTable, unit: KeyRangeUnit, place: str, count: int) -> Iterator[list[RawRow]]:
        """The unit's rows in the order of their keys, after `place`, in lists of at most `count`."""
        conditions = []
        keys = [quoted(table.columns[each].name) for each in table.key]
        if unit.low is not None:
            conditions.append(f"{keys[0]} >= {unit.low}")
        if unit.high is not None:
            conditions.append(f"{keys[0]} < {unit.high}")
        if place:
            conditions.append(_after(keys, json.loads(place)))
        # The text of a FLOAT has six digits; that of the DOUBLE it is has all.
        columns = ", ".join(f"{quoted(each.name)} * 1e0" if each.kind == "float" else quoted(each.name) for each in table.columns)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = f" ORDER BY {', '.join(keys)}" if keys else ""
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {quoted(table.name)}{where}{order}")
            while rows := cursor.fetchmany(count):
                yield list(rows)


def place_of(table: ImportedTable, row: RawRow) -> str:
    """Where a unit goes on after this row; '' if the table has no key."""
    return json.dumps([literal(table.columns[each].kind, row[each]) for each in table.key]) if table.key else ""


def literal(kind: str, value: Any) -> str:
    """A value of a key, as SQL has it."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if kind in _NUMBERS else f"'{escape_string(str(value))}'"


def _after(keys: Sequence[str], values: Sequence[str]) -> str:
    """Rows behind the one with these values; written so that servers find the first of them by the key."""
    found = f"{keys[-1]} > {values[-1]}"
    for key, value in reversed(list(zip(keys[:-1], values[:-1]))):
        found = f"{key} >= {value} AND ({key} > {value} OR ({found}))"
    return found
