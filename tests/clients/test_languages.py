"""Drivers of other languages see the same on millrace and on MariaDB: rows, types, counts, errors.

Each program prints all that it sees. What the two servers are known to answer differently
(JSON as a type, widths of integers, the type of a literal) the programs leave out and say so.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.clients.programs import FOLDER, PROGRAMS, Command, prepare
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


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["mysql", "mysql2"])
def test_an_application_of_node_sees_what_it_sees_on_mariadb(
    driver: str, millrace: MillraceServer, mariadb: MariaDB, tmp_path: Path
) -> None:
    environment = prepare("node", tmp_path).environment
    transcripts = []
    for server, port, plugin in (
        (mariadb, mariadb.port, "IDENTIFIED VIA mysql_native_password USING PASSWORD(%s)"),
        (millrace, millrace.mysql_port, "IDENTIFIED WITH mysql_native_password BY %s"),
    ):
        database, account = f"notes_{driver}", f"{driver}_user"
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
            cursor.execute(f"CREATE USER {account}@'%%' {plugin}", ("its secret",))
            cursor.execute(f"GRANT ALL ON {database}.* TO {account}@'%'")
        program = Command(("node", str(FOLDER / "node" / "notes.js"), driver, account, "its secret"), environment)
        transcripts.append(program.run(server.host, port, database).splitlines())
    lines = list(difflib.unified_diff(*transcripts, "mariadb", "millrace", n=1))
    assert not lines, "\n".join(lines[:60])


@pytest.mark.slow
def test_an_application_that_knows_no_newer_login_runs_where_it_is_the_default(tmp_path: Path) -> None:
    environment = prepare("node", tmp_path).environment
    server = MillraceServer(tmp_path / "data", "--durability=os", "--default-authentication=mysql_native_password")
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE notes")
            cursor.execute("CREATE USER old@'%' IDENTIFIED BY 'secret'")
            cursor.execute("GRANT ALL ON notes.* TO old@'%'")
            cursor.execute("CREATE USER new@'%' IDENTIFIED WITH caching_sha2_password BY 'secret'")
        program = str(FOLDER / "node" / "notes.js")
        found = Command(("node", program, "mysql", "old", "secret"), environment).run(server.host, server.mysql_port, "notes")
        assert 'who: {"id":1,"name":"ann"' in found
        with pytest.raises(AssertionError, match="UNSUPPORTED_AUTH_METHOD"):
            Command(("node", program, "mysql", "new", "secret"), environment).run(server.host, server.mysql_port, "notes")
    finally:
        server.kill()
