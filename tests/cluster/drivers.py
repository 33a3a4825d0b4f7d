"""Servers behind the MySQL drivers of Python, text and prepared, as peers for comparison."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import aiomysql
import asyncmy
import asyncmy.errors
import mariadb
import mysql.connector
import MySQLdb
import pymysql
from mysql.connector.constants import FieldType

from tests.differential.comparison import SAME_ERRORS, Answer

FLOATS = (FieldType.FLOAT, FieldType.DOUBLE)
ROUNDING = "SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')"
"""MySQL rounds fractions of a second, MariaDB cuts them unless told so."""


class DriverPeer:
    """A server behind one driver. Cells are compared as that driver shows them."""

    def __init__(
        self, connection: Any, open_cursor: Callable[[Any], Any], error: type[Exception], is_mariadb: bool
    ) -> None:
        self._connection = connection
        self._open_cursor = open_cursor
        self._error = error
        if is_mariadb:
            self.run(ROUNDING)

    def run(self, sql: str) -> Answer:
        cursor = self._open_cursor(self._connection)
        try:
            cursor.execute(sql)
            if cursor.description is None:
                return Answer(affected=cursor.rowcount, last_insert_id=cursor.lastrowid or 0)
            rows = [tuple(_cell(value) for value in row) for row in cursor.fetchall()]
            floats = frozenset(at for at, column in enumerate(cursor.description) if column[1] in FLOATS)
            return Answer(rows, floats=floats)
        except self._error as error:
            code = getattr(error, "errno", None) or error.args[0]
            message = getattr(error, "msg", None) or error.args[-1]
            return Answer(error=SAME_ERRORS.get(code, code), message=str(message))
        finally:
            cursor.close()


def _cell(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return bytes(value) if isinstance(value, bytearray) else repr(value).encode()


def pymysql_peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
    connection = pymysql.connect(
        host=host, port=port, user="root", database=database, autocommit=True, conv={}
    )
    connection.decoders = {}
    return DriverPeer(connection, lambda c: c.cursor(), pymysql.MySQLError, is_mariadb)


def mysqlclient_peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
    connection = MySQLdb.connect(
        host=host,
        port=port,
        user="root",
        database=database,
        autocommit=True,
        conv={},
        charset="utf8mb4",
        use_unicode=False,
    )
    return DriverPeer(connection, lambda c: c.cursor(), MySQLdb.MySQLError, is_mariadb)


def _connector(host: str, port: int, database: str, **options: Any) -> Any:
    return mysql.connector.connect(
        host=host, port=port, user="root", password="", database=database, autocommit=True,
        charset="utf8mb4", collation="utf8mb4_general_ci", **options,
    )  # fmt: skip


def connector_text_peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
    connection = _connector(host, port, database, use_pure=True, raw=True)
    return DriverPeer(connection, lambda c: c.cursor(), mysql.connector.Error, is_mariadb)


def connector_prepared_peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
    connection = _connector(host, port, database, use_pure=True)
    return DriverPeer(connection, lambda c: c.cursor(prepared=True), mysql.connector.Error, is_mariadb)


class BlockingCursor:
    """A cursor of an asynchronous driver, each call run to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cursor: Any) -> None:
        self._loop = loop
        self._cursor = cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str) -> None:
        self._loop.run_until_complete(self._cursor.execute(sql))

    def fetchall(self) -> Any:
        return self._loop.run_until_complete(self._cursor.fetchall())

    def close(self) -> None:
        self._loop.run_until_complete(self._cursor.close())


def _asynchronous(driver: Any, error: type[Exception]) -> Callable[[str, int, str, bool], DriverPeer]:
    def peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
        loop = asyncio.new_event_loop()

        async def connect() -> Any:
            return await driver.connect(
                host=host, port=port, user="root", password="", db=database, autocommit=True, charset="utf8mb4"
            )

        async def opened(connection: Any) -> Any:
            cursor = connection.cursor()
            return await cursor if inspect.isawaitable(cursor) else cursor

        def open_cursor(connection: Any) -> BlockingCursor:
            return BlockingCursor(loop, loop.run_until_complete(opened(connection)))

        return DriverPeer(loop.run_until_complete(connect()), open_cursor, error, is_mariadb)

    return peer


def mariadb_peer(host: str, port: int, database: str, is_mariadb: bool) -> DriverPeer:
    connection = mariadb.connect(host=host, port=port, user="root", password="", database=database, autocommit=True)
    return DriverPeer(connection, lambda c: c.cursor(), mariadb.Error, is_mariadb)


PEERS = {
    "pymysql": pymysql_peer,
    "mysqlclient": mysqlclient_peer,
    "connector-text": connector_text_peer,
    "connector-prepared": connector_prepared_peer,
    "mariadb": mariadb_peer,
    "aiomysql": _asynchronous(aiomysql, pymysql.MySQLError),
    "asyncmy": _asynchronous(asyncmy, asyncmy.errors.MySQLError),
}
