"""The importers' questions to a MySQL server, and the settings that prevent an import."""

from __future__ import annotations

from typing import Any

import pymysql


class CannotImport(Exception):
    """What is in the way, in words for the user."""


class ImportConflict(Exception):
    """Another importer does the same."""


def rows_of(connection: Any, sql: str, arguments: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())


def error_of(error: pymysql.MySQLError) -> tuple[int, str]:
    code, message = (*error.args, "", "")[:2]
    return (code if isinstance(code, int) else 2013), str(message)
