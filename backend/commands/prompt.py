"""A simple SQL prompt, for machines without a MySQL client."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from getpass import getpass

import pymysql
from rich.console import Console
from rich.table import Table

from controller.sql.text.lexer import split_statements


@dataclass
class _Given:
    """The options of the mysql client that are understood here."""

    database: str | None = None
    password: str = ""
    statements: list[str] | None = None


def _read(arguments: Sequence[str]) -> _Given:
    found, left = _Given(), list(arguments)
    while left:
        each = left.pop(0)
        name, equals, value = each.partition("=")
        if each in ("-e", "--execute") and left:
            found.statements = split_statements(left.pop(0))
        elif name == "--execute" and equals:
            found.statements = split_statements(value)
        elif each in ("-p", "--password"):
            found.password = getpass()
        elif name == "--password":
            found.password = value
        elif each.startswith("-") or found.database is not None:
            sys.exit(f"millrace: {each} needs the mysql or mariadb client, which is not installed")
        else:
            found.database = each
    return found


def run_prompt(host: str, port: int, user: str, arguments: Sequence[str] = ()) -> None:
    """Run the statements of -e; without it, read statements up to ';' and show their results until the input ends."""
    console, given = Console(highlight=False), _read(arguments)
    try:
        connection = pymysql.connect(
            host=host, port=port, user=user, password=given.password, database=given.database, autocommit=True
        )
    except pymysql.MySQLError as error:
        print(f"millrace: {error}", file=sys.stderr)
        sys.exit(1)
    if given.statements is not None:
        sys.exit(0 if all(_show(console, connection, each) for each in given.statements) else 1)
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (line editing for input())
    statement = ""
    while True:
        try:
            line = input("   -> " if statement else "millrace> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        statement = f"{statement}\n{line}" if statement else line
        if not statement.strip():
            statement = ""
        elif statement.strip().lower().rstrip(";") in ("exit", "quit"):
            return
        elif statement.rstrip().endswith(";"):
            _show(console, connection, statement.rstrip().rstrip(";"))
            statement = ""


def _show(console: Console, connection: pymysql.Connection, statement: str) -> bool:
    """Whether it succeeded."""
    with connection.cursor() as cursor:
        try:
            count = cursor.execute(statement)
        except pymysql.MySQLError as error:
            code, message = (*error.args, "")[:2]
            console.print(f"ERROR {code}: {message}", markup=False)
            return False
        if cursor.description is None:
            console.print(f"{count} row(s) affected")
            return True
        table = Table(*(column[0] for column in cursor.description))
        for row in cursor.fetchall():
            table.add_row(*("NULL" if value is None else str(value) for value in row))
        console.print(table)
        console.print(f"{count} row(s)")
        return True
