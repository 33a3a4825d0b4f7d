"""Servers behind the MySQL drivers of Python, text and prepared, as peers for comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


PEERS = {
    "pymysql": pymysql_peer,
    "mysqlclient": mysqlclient_peer,
    "connector-text": connector_text_peer,
    "connector-prepared": connector_prepared_peer,
}
