"""A simple SQL prompt, for machines without a MySQL client."""

from __future__ import annotations

import contextlib
import sys

import pymysql
from rich.console import Console
from rich.table import Table


def run_prompt(host: str, port: int, user: str) -> None:
    """Read statements up to ';' and show their results until the input ends."""
    console = Console(highlight=False)
    try:
        connection = pymysql.connect(host=host, port=port, user=user, autocommit=True)
    except pymysql.MySQLError as error:
        print(f"millrace: {error}", file=sys.stderr)
        sys.exit(1)
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


def _show(console: Console, connection: pymysql.Connection, statement: str) -> None:
    with connection.cursor() as cursor:
        try:
            count = cursor.execute(statement)
        except pymysql.MySQLError as error:
            code, message = (*error.args, "")[:2]
            console.print(f"ERROR {code}: {message}", markup=False)
            return
        if cursor.description is None:
            console.print(f"{count} row(s) affected")
            return
        table = Table(*(column[0] for column in cursor.description))
        for row in cursor.fetchall():
            table.add_row(*("NULL" if value is None else str(value) for value in row))
        console.print(table)
        console.print(f"{count} row(s)")
