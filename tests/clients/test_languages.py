"""Drivers of other languages see the same on millrace and on MariaDB: rows, types, counts, errors.

Each program prints all that it sees. What the two servers are known to answer differently
(JSON as a type, widths of integers, the type of a literal) the programs leave out and say so.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.clients.programs import FOLDER, PROGRAMS, prepare
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

SCHEMA = [
    line for line in (FOLDER / "schema.sql").read_text().splitlines() if line and not line.startswith("--")
]


def fill(server: MariaDB | MillraceServer, database: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
        cursor.execute(f"USE {database}")
        for statement in SCHEMA:
            cursor.execute(statement)


@pytest.mark.slow
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_driver_sees_what_it_sees_on_mariadb(
    language: str, millrace: MillraceServer, mariadb: MariaDB, tmp_path: Path
) -> None:
    command = prepare(language, tmp_path)
    database = f"client_{language}"
    fill(mariadb, database)
    fill(millrace, database)
    expected = command.run(mariadb.host, mariadb.port, database)
    found = command.run(millrace.host, millrace.mysql_port, database)
    lines = list(difflib.unified_diff(expected.splitlines(), found.splitlines(), "mariadb", "millrace", n=1))
    assert not lines, "\n".join(lines[:60])
