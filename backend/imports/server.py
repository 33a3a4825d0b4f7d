"""A MySQL server by its address: where rows come from, or the millrace that they go to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql

CONNECT_TIMEOUT_S = 20


class CannotImport(Exception):
    """What is in the way, in words for the user."""


class ImportConflict(Exception):
    """Another importer does the same."""


@dataclass(frozen=True, slots=True)
class MysqlAddress:
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str | None = None

    @classmethod
    def parse(cls, url: str) -> MysqlAddress:
        """Of `mysql://user:password@host:port/database`, or `mariadb://…`."""
        parts = urlsplit(url)
        database = unquote(parts.path.strip("/"))
        if not parts.hostname or not database or "/" in database:
            raise ValueError("the source has to be mysql://user:password@host:port/database")
        return cls(parts.hostname, parts.port or 3306, unquote(parts.username or "root"), unquote(parts.password or ""), database)

    def within(self, database: str | None) -> MysqlAddress:
        return replace(self, database=database)

    @property
    def name(self) -> str:
        """Without the password."""
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database or ''}"

    def connect(self, **options: Any) -> Any:
        """A connection in UTC."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            database=self.database,
            **{"charset": "utf8mb4", "autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S}
            | {"init_command": "SET time_zone = '+00:00'"}
            | options,
        )


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def rows_of(connection: Any, sql: str, arguments: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())


def error_of(error: pymysql.MySQLError) -> tuple[int, str]:
    code, message = (*error.args, "", "")[:2]
    return (code if isinstance(code, int) else 2013), str(message)
