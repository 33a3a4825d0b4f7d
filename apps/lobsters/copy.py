"""The site of one server on another: `python -m apps.lobsters.copy PORT PORT_OF_MARIADB DATABASE VARIANT` makes the database on
MariaDB, and copies every table. The next AUTO_INCREMENT values are those of the first server, too.
"""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime
from decimal import Decimal

from pymysql.converters import escape_string

from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.site import ROWS_AT_ONCE, definitions


def copy_site(ours: PlainConnection, theirs: PlainConnection, database: str, variant: str) -> None:
    theirs.query(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    theirs.query(f"USE {database}")
    for sql in definitions(variant, True):
        theirs.query(sql)
    tables = ours.query(
        "SELECT table_name AS name, auto_increment AS number FROM information_schema.tables"
        f" WHERE table_schema = '{database}' AND table_type = 'BASE TABLE'"
    )
    for table, following in tables.rows:
        theirs.query(f"DELETE FROM {table}")
        found = ours.query(f"SELECT * FROM {table}")
        names = ", ".join(f"`{each}`" for each in found.columns)
        for start in range(0, len(found.rows), ROWS_AT_ONCE):
            rows = (f"({', '.join(map(_literal, row))})" for row in found.rows[start : start + ROWS_AT_ONCE])
            theirs.query(f"INSERT INTO {table} ({names}) VALUES {', '.join(rows)}")
        if following is not None:
            theirs.query(f"ALTER TABLE {table} AUTO_INCREMENT = {following}")


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case int() | float() | Decimal():
            return str(value)
        case str() | datetime():
            return f"'{escape_string(str(value))}'"
    raise TypeError(value)


def main() -> None:
    ours_port, theirs_port, database, variant = sys.argv[1:]
    with (
        closing(PlainConnection("127.0.0.1", int(ours_port), database)) as ours,
        closing(PlainConnection("127.0.0.1", int(theirs_port))) as theirs,
    ):
        copy_site(ours, theirs, database, variant)


if __name__ == "__main__":
    main()
