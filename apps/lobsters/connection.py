"""A connection of a load process: statements of a page through drivers written in C.

Text goes through mysqlclient, what the page prepares through MariaDB's connector; both let other threads run
while they wait. Rows stay as they came, except that prepared statements give numbers as numbers.
"""

from __future__ import annotations

from typing import Any

import mariadb
from MySQLdb import _mysql

from apps.lobsters.pages import Result, Statement
from apps.lobsters.plain_connection import SQL_MODE


class TextConnection:
    def __init__(self, host: str, port: int, database: str) -> None:
        self._driver = _mysql.connection(host=host, port=port, user="root", database=database, charset="utf8mb4")
        self._driver.query(SQL_MODE)
        self._columns: dict[str, dict[str, int]] = {}

    def execute(self, statement: Statement, values: list[Any]) -> Result:
        return self.query(statement.text(values, _escaped), statement.name)

    def query(self, sql: str, name: str = "") -> Result:
        """Column names are remembered by the statement's name, if it has one."""
        driver = self._driver
        driver.query(sql.encode())
        answer = driver.store_result()
        if answer is None:
            return Result(insert_id=driver.insert_id())
        columns = self._columns.get(name)
        if columns is None:
            columns = {each[0]: number for number, each in enumerate(answer.describe())}
            if name:
                self._columns[name] = columns
        return Result(columns, answer.fetch_row(0))

    def close(self) -> None:
        self._driver.close()


class PreparedConnection:
    """Statements that the page prepares are prepared once for each number of values; others go as text."""

    def __init__(self, host: str, port: int, database: str) -> None:
        self._text = TextConnection(host, port, database)
        self._driver = mariadb.connect(host=host, port=port, user="root", database=database, autocommit=True)
        self._driver.cursor().execute(SQL_MODE)
        self._cursors: dict[str, Any] = {}
        self._columns: dict[str, dict[str, int]] = {}

    def execute(self, statement: Statement, values: list[Any]) -> Result:
        if not statement.is_prepared:
            return self._text.execute(statement, values)
        sql, flat = statement.spread(values)
        cursor = self._cursors.get(sql)
        if cursor is None:
            cursor = self._cursors[sql] = self._driver.cursor(prepared=True)
        cursor.execute(sql, flat)
        if not cursor.field_count:
            return Result(insert_id=cursor.lastrowid or 0)
        columns = self._columns.get(statement.name)
        if columns is None:
            columns = self._columns[statement.name] = {each[0]: number for number, each in enumerate(cursor.description)}
        return Result(columns, cursor.fetchall())

    def query(self, sql: str) -> Result:
        return self._text.query(sql)

    def close(self) -> None:
        self._driver.close()
        self._text.close()


Connection = TextConnection | PreparedConnection


def connect(protocol: str, host: str, port: int, database: str) -> Connection:
    return (PreparedConnection if protocol == "prepared" else TextConnection)(host, port, database)


def _escaped(text: str) -> str:
    return str(_mysql.escape_string(text.encode()).decode())
