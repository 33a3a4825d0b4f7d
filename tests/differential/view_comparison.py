"""Servers that are asked the same queries again and again while their tables change, beside MariaDB."""

from __future__ import annotations

from ast import literal_eval
from contextlib import ExitStack
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Protocol

import mysql.connector
import pymysql

from backend.execution.local_store import LocalStore
from tests.differential.comparison import Answer, DriverPeer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.query_changes import Shape, changes, shapes
from tests.differential.query_tables import definitions
from tests.differential.test_queries import REFUSED_BY_MARIADB
from tests.mariadb import MariaDB
from tests.wire.server import sharing_server

VARIANTS = 2
ROUNDS = 8
CHANGES_PER_ROUND_MAX = 12
DULL = 0.8
"""So many of the queries that find nothing at first are not asked again."""


class Server(Protocol):
    answers: int
    from_views: int

    def run(self, sql: str) -> Answer: ...

    def ask(self, shape: Shape) -> Answer: ...

    def disturb(self, random: Random) -> None:
        """Do what no answer may depend on."""


def compare(mariadb: MariaDB, found: Server, seed: int, queries: int, asked_first: int = 2) -> None:
    """Ask and change in turns. At first everything is asked often enough to become a view."""
    random = Random(seed)
    statements, tables = definitions(random)
    with mariadb.connect(mariadb.fresh_database()) as connection:
        expected = DriverPeer(connection)
        expected.run("SET SESSION max_statement_time = 1")
        # Merged into an outer join, MariaDB's computed columns are sometimes not NULL where they have to be; its cache of
        # subqueries takes texts for the same that the subquery tells apart.
        expected.run("SET SESSION optimizer_switch = 'derived_merge=off,subquery_cache=off'")
        for sql in statements:
            assert not expected.run(sql).error and not found.run(sql).error, sql
        asked: list[Shape] = []
        for shape in shapes(random, tables, queries):
            asked += [shape, *(shape.varied(random) for _ in range(VARIANTS))]
        history: list[str] = []
        for number in range(ROUNDS):
            problems: list[str] = []
            for shape in list(asked):
                statement = shape.statement
                theirs = expected.run(statement.elsewhere or statement.sql)
                is_dull = number == 0 and not theirs.rows and random.random() < DULL
                if theirs.error in REFUSED_BY_MARIADB or is_dull:
                    asked.remove(shape)
                    continue
                for _ in range(1 if number else asked_first):
                    found.answers += 1
                    if difference := differences(statement, theirs, found.ask(shape)):
                        problems.append(f"{shape}\n  expected {difference}")
                        break
            assert not problems, f"seed {seed}, {len(problems)} answers differ after {history}:\n" + "\n".join(problems)
            for _ in range(random.randint(1, CHANGES_PER_ROUND_MAX)):
                for sql in changes(random, tables):
                    theirs, ours = expected.run(sql), found.run(sql)
                    assert theirs.error == ours.error, f"seed {seed}: {sql}: {theirs}, found {ours}"
                    history.append(sql)
                if random.random() < 0.1:
                    found.disturb(random)
            found.disturb(random)


class EmbeddedViews(EmbeddedPeer):
    """The engine in this process. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, shard_count=1)
        assert isinstance(self.database.store, LocalStore)
        self._host = self.database.store._views
        self.answers = self.from_views = 0

    def ask(self, shape: Shape) -> Answer:
        before = self._uses()
        answer = self.run(shape.statement.sql)
        self.from_views += self._uses() > before
        return answer

    def _uses(self) -> int:
        return sum(each.hits + each.misses for each in self._host.views.values())

    def disturb(self, random: Random) -> None:
        """Evict keys, and let a view go."""
        host = self._host
        if random.random() < 0.4:
            host._memory_bytes = int(host.engine.measure().total_bytes * random.random())
            host.enforce_limit()
        if random.random() < 0.4 and host.views:
            host.remove(random.choice(list(host.views)))


class Clients:
    """A server behind drivers, asked by texts and by prepared statements."""

    def __init__(self, port: int, database: str = "d") -> None:
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4", autocommit=True)
        self._text = DriverPeer(connection)
        self.run(f"CREATE DATABASE {database}")
        self.run(f"USE {database}")
        self._prepared: Any = mysql.connector.connect(host="127.0.0.1", port=port, user="root", database=database, use_pure=True)
        _read_years(vars(self._prepared)["_protocol"])
        self._cursors: dict[str, Any] = {}
        self.answers = self.from_views = 0

    def run(self, sql: str) -> Answer:
        return self._text.run(sql)

    def ask(self, shape: Shape) -> Answer:
        if not shape.is_prepared:
            return self.run(shape.statement.sql)
        sql, values = shape.prepared()
        cursor = self._cursors.get(sql) or self._prepared.cursor(prepared=True)
        self._cursors[sql] = cursor
        try:
            cursor.execute(sql, tuple(map(_parameter, values)))
        except mysql.connector.Error as error:
            return Answer(error=error.errno or -1, message=str(error.msg))
        return Answer([tuple(map(_cell, row)) for row in cursor.fetchall()])

    def disturb(self, random: Random) -> None:
        pass

    def close(self) -> None:
        self._prepared.close()


def _read_years(protocol: Any) -> None:
    """The driver reads a YEAR of a prepared statement as a string, where servers send two bytes."""
    parse, year = protocol._parse_binary_values, mysql.connector.FieldType.YEAR

    def parsed(fields: list[Any], *more: Any) -> Any:
        return parse([(field[0], mysql.connector.FieldType.SHORT, *field[2:]) if field[1] == year else field for field in fields], *more)

    protocol._parse_binary_values = parsed


def _parameter(literal: str) -> object:
    if literal == "NULL":
        return None
    return Decimal(literal) if "." in literal else literal_eval(literal)


def _cell(value: object) -> bytes | None:
    """As the text protocol would have it."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, Decimal):
        return format(value, "f").encode()
    if isinstance(value, timedelta):
        seconds = abs(int(value.total_seconds()))
        sign = "-" if value < timedelta() else ""
        return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}".encode()
    return (value.isoformat(" ") if isinstance(value, datetime) else str(value)).encode()


class SharedViews(Clients):
    """A server in this process whose views are in shared memory. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._running = ExitStack()
        self._server = self._running.enter_context(sharing_server(folder))
        super().__init__(self._server.port)

    def __enter__(self) -> SharedViews:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        self._running.__exit__(kind, error, trace)

    def ask(self, shape: Shape) -> Answer:
        assert self._server.server is not None
        shortcuts = self._server.server.environment.shortcuts
        before = shortcuts.answered
        answer = super().ask(shape)
        self.from_views += shortcuts.answered > before
        return answer
