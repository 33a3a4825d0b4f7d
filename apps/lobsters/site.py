"""The site's database on a server: `python -m apps.lobsters.site PORT DATABASE VARIANT SCALE RIBBONS mariadb|millrace`
creates and fills the database, and prints each step on a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from itertools import islice
from typing import Any

from pymysql.converters import escape_string

from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.priming import Row, tables

ROWS_AT_ONCE = 1_000


def definitions(variant: str, mariadb: bool = False) -> Iterator[str]:
    """Tables, then the natural variant's views; MariaDB's own form of one of them where it is given."""
    files = [f"schema_{variant}.sql"]
    if variant == "natural":
        files += ["views_natural.sql"] + (["views_natural_mariadb.sql"] if mariadb else [])
    for file in files:
        lines = resources.files("apps.lobsters").joinpath(file).read_text().splitlines()
        text = "\n".join(line.split("--")[0] for line in lines)
        yield from (each.strip() for each in text.split(";") if each.strip())


def build_site(connection: PlainConnection, database: str, variant: str, scale: float, ribbons: int, mariadb: bool) -> Iterator[str]:
    """From nothing to the primed site; yields what comes next."""
    connection.query(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    connection.query(f"USE {database}")
    for sql in definitions(variant, mariadb):
        connection.query(sql)
    names = []
    for table, columns, rows in tables(variant, scale, ribbons=ribbons):
        yield f"{len(rows):,} {table}"
        names.append(table)
        left = iter(rows)
        while some := list(islice(left, ROWS_AT_ONCE)):
            connection.query(f"INSERT INTO {table} ({columns}) VALUES {', '.join(map(_row, some))}")
    connection.query(f"ANALYZE TABLE {', '.join(names)}")


def _row(row: Row) -> str:
    return f"({', '.join(map(_value, row))})"


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{escape_string(value)}'"


def main() -> None:
    port, database, variant, scale, ribbons, server = sys.argv[1:]
    with closing(PlainConnection("127.0.0.1", int(port))) as connection:
        for line in build_site(connection, database, variant, float(scale), int(ribbons), server == "mariadb"):
            print(line, flush=True)


if __name__ == "__main__":
    main()
