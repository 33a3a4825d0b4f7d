"""What the tests of `millrace import` share: a source to import from, the command, and a comparison of all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
from click.testing import CliRunner, Result

from backend.imports.columns import describe
from backend.imports.command import import_command
from backend.imports.server import rows_of
from controller.sql.text.lexer import quoted

KINDS = (Path(__file__).parent / "imported.sql").read_text()


def connect(port: int, database: str | None = None) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user="root", database=database, autocommit=True, charset="utf8mb4", sql_mode="")


def fill(connection: Any, script: str) -> None:
    rows_of(connection, "SET sql_mode = 'ALLOW_INVALID_DATES'")
    for statement in script.split(";\n"):
        if statement.strip():
            rows_of(connection, statement)


def run_import(port: int, *arguments: str) -> Result:
    return CliRunner().invoke(import_command, [*arguments, f"--mysql-port={port}"], catch_exceptions=False)


def contents(connection: Any, database: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table and view; FLOATs with all their digits."""
    rows_of(connection, f"USE {quoted(database)}")
    rows_of(connection, "SET sql_mode = '', time_zone = '+00:00'")
    found = {}
    for (name,) in rows_of(connection, "SHOW TABLES"):
        table = describe(connection, database, name)
        assert table is not None
        columns = ", ".join(f"{quoted(each.name)} * 1e0" if each.kind == "float" else quoted(each.name) for each in table.columns)
        found[name] = sorted(rows_of(connection, f"SELECT {columns} FROM {quoted(name)}"), key=repr)
    return found
