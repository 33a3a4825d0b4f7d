"""A connection that needs nothing but PyMySQL, for the demo and for building the site."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pymysql
from pymysql.converters import escape_string

from apps.lobsters.pages import Result, Statement

SQL_MODE = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'"


class PlainConnection:
    def __init__(self, host: str, port: int, database: str | None = None) -> None:
        self._driver = pymysql.connect(host=host, port=port, user="root", database=database, charset="utf8mb4", autocommit=True)
        self.query(SQL_MODE)

    def execute(self, statement: Statement, values: list[Any]) -> Result:
        pieces = [statement.pieces[0]]
        for value, piece in zip(values, statement.pieces[1:]):
            pieces += [_literal(value), piece]
        return self.query("".join(pieces))

    def query(self, sql: str) -> Result:
        with self._driver.cursor() as cursor:
            cursor.execute(sql)
            if cursor.description is None:
                return Result(insert_id=cursor.lastrowid or 0)
            columns = {each[0]: number for number, each in enumerate(cursor.description)}
            return Result(columns, cursor.fetchall())

    def close(self) -> None:
        self._driver.close()


def _literal(value: Any) -> str:
    match value:
        case int() | Decimal():
            return str(value)
        case list():
            return ", ".join(map(str, value))
        case str() | datetime():
            return f"'{escape_string(str(value))}'"
        case None:
            return "NULL"
    raise TypeError(value)
