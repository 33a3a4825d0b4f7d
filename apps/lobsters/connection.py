"""A connection through mysqlclient, for comparing answers: rows stay as they came."""

from __future__ import annotations

from typing import Any

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


def _escaped(text: str) -> str:
    return str(_mysql.escape_string(text.encode()).decode())
