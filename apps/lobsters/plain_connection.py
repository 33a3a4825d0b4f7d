"""A connection that needs nothing but PyMySQL, for the demo and for building the site."""

from __future__ import annotations

from typing import Any

import pymysql
from pymysql.converters import escape_string

from apps.lobsters.pages import Result, Statement

SQL_MODE = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'"
"""MariaDB does not know that the columns of a table depend on its key, so ONLY_FULL_GROUP_BY is off."""


class PlainConnection:
    def __init__(self, host: str, port: int, database: str | None = None) -> None:
        self._driver = pymysql.connect(host=host, port=port, user="root", database=database, charset="utf8mb4", autocommit=True)
        self.query(SQL_MODE)

    def execute(self, statement: Statement, values: list[Any]) -> Result:
        return self.query(statement.text(values, escape_string))

    def query(self, sql: str) -> Result:
        with self._driver.cursor() as cursor:
            cursor.execute(sql)
            if cursor.description is None:
                return Result(insert_id=cursor.lastrowid or 0)
            columns = {each[0]: number for number, each in enumerate(cursor.description)}
            return Result(columns, cursor.fetchall())

    def close(self) -> None:
        self._driver.close()
