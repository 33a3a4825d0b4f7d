"""Dumps by mariadb-dump go from each server into the other and come back the same.

A dump that MySQL 8.0 wrote is here as a file, since no MySQL is at hand.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mariadb import MariaDB
from tests.serving import MillraceServer

FOLDER = Path(__file__).parent
RESTORE_TIMEOUT_S = 120

Server = MariaDB | MillraceServer

OPTIONS = {
    "usual": ["--single-transaction"],
    "hexadecimal": ["--single-transaction", "--hex-blob", "--complete-insert"],
    "row by row": ["--skip-extended-insert", "--lock-tables"],
    "replacing": ["--replace", "--no-autocommit", "--order-by-primary"],
    "compact": ["--compact", "--skip-opt", "--create-options", "--quick"],
    "everything": ["--routines", "--triggers", "--events", "--opt", "--add-locks", "--disable-keys"],
}


def client(server: Server, program: str, *arguments: str) -> list[str]:
    port = server.port if isinstance(server, MariaDB) else server.mysql_port
    where = [f"--host={server.host}", f"--port={port}", "--user=root", "--protocol=tcp", "--default-character-set=utf8mb4"]
    return [program, *where, *arguments]


def dump(server: Server, *arguments: str) -> bytes:
    done = subprocess.run(client(server, "mariadb-dump", *arguments), capture_output=True, timeout=RESTORE_TIMEOUT_S)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return done.stdout


def restore(server: Server, text: bytes, database: str | None = None) -> None:
    if database is not None:
        execute(server, f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
    command = client(server, "mariadb", *([database] if database else []))
    done = subprocess.run(command, input=text, capture_output=True, timeout=RESTORE_TIMEOUT_S)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]


def execute(server: Server, sql: str, database: str | None = None) -> Any:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def contents(server: Server, database: str) -> dict[str, Any]:
    """Every row of every table and view."""
    names = sorted(name for (name,) in execute(server, "SHOW TABLES", database))
    return {name: execute(server, f"SELECT * FROM `{name}` ORDER BY 1", database) for name in names}


def fill(server: Server, database: str) -> None:
    execute(server, f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
    with server.connect(database) as connection, connection.cursor() as cursor:
        # A view remembers the collation of its making, and MariaDB does not know MySQL's default.
        cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        for statement in (FOLDER / "shop.sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement)


@pytest.fixture(scope="module")
def shops(millrace: MillraceServer, mariadb: MariaDB) -> dict[str, Server]:
    for server in (millrace, mariadb):
        fill(server, "shop")
    return {"millrace": millrace, "mariadb": mariadb}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["millrace", "mariadb"])
@pytest.mark.parametrize("source", ["millrace", "mariadb"])
@pytest.mark.parametrize("options", OPTIONS)
def test_what_was_dumped_is_there_again(options: str, source: str, target: str, shops: dict[str, Server]) -> None:
    text = dump(shops[source], *OPTIONS[options], "shop")
    database = re.sub(r"\W", "_", f"{options}_{source}_{target}")
    if options == "compact":  # which leaves out the settings that a dump begins with
        text = b"SET foreign_key_checks = 0; SET sql_mode = '';\n" + text
    restore(shops[target], text, database)
    expected = contents(shops[source], "shop")
    assert expected.keys() == {"authors", "books", "novels"} and len(expected["books"]) == 3
    found = contents(shops[target], database)
    for table in expected:
        assert found[table] == expected[table], table


@pytest.mark.slow
def test_a_dump_of_a_restored_dump_is_the_same_dump(millrace: MillraceServer, shops: dict[str, Server]) -> None:
    def lines(database: str) -> list[bytes]:
        text = dump(millrace, "--single-transaction", "--skip-comments", "--skip-extended-insert", database)
        return text.replace(database.encode(), b"shop").splitlines()

    restore(millrace, dump(millrace, "--single-transaction", "shop"), "second")
    assert lines("second") == lines("shop")


@pytest.mark.slow
def test_whole_databases_are_dumped_and_restored(millrace: MillraceServer, mariadb: MariaDB, shops: dict[str, Server]) -> None:
    fill(millrace, "elsewhere")
    text = dump(millrace, "--databases", "elsewhere", "--add-drop-database", "--single-transaction")
    expected = contents(millrace, "elsewhere")
    for server in (millrace, mariadb):
        restore(server, text)
        assert contents(server, "elsewhere") == expected
    assert b"CREATE TABLE `books`" in dump(millrace, "--all-databases", "--single-transaction")
    assert b"<row>" in dump(millrace, "--xml", "shop")
    assert b"INSERT" not in dump(millrace, "--no-data", "shop")
    assert dump(millrace, "--no-create-info", "--skip-extended-insert", "--where=id = 1", "shop", "authors").count(b"INSERT") == 1


@pytest.mark.slow
def test_a_dump_of_mysql_8_is_imported(millrace: MillraceServer, mariadb: MariaDB) -> None:
    restore(millrace, (FOLDER / "mysql8_dump.sql").read_bytes())
    found = contents(millrace, "shop8")
    assert [row[0] for row in found["authors"]] == [0, 1, 2, 3]
    assert found["novels"] == ((100, "One", "Ann"),)
    books = execute(millrace, "SELECT id, title, full_price, upper_title, flags + 0, HEX(cover), token FROM books ORDER BY id", "shop8")
    assert [tuple(map(str, row)) for row in books] == [
        ("100", "One", "3.00", "ONE", "1", "0027225C0A0D1A", "book-novel"),
        ("101", "Two", "None", "TWO", "31", "FFFE00", "None"),
        ("102", "日本 😀", "0.00", "日本 😀", "None", "None", "t"),
    ]
    # It goes on to MariaDB once that is spared the collation and the syntax it does not know.
    text = dump(millrace, "--single-transaction", "shop8").replace(b"utf8mb4_0900_ai_ci", b"utf8mb4_general_ci")
    text = re.sub(rb"\n  (?:KEY `functional`|CONSTRAINT `kind_known`)[^\n]*,(?=\n)", b"", text)
    restore(mariadb, text, "from_mysql8")
    assert contents(mariadb, "from_mysql8") == found
    # What goes wrong after an import is what went wrong before the dump.
    with millrace.connect("shop8") as connection, connection.cursor() as cursor:
        for sql, code in (
            ("INSERT INTO books (title, author_id) VALUES ('x', 4711)", 1452),
            ("INSERT INTO books (title, price) VALUES ('x', -1)", 3819),
            ("INSERT INTO authors (name) VALUES ('ANN')", 1062),
        ):
            with pytest.raises(Exception) as raised:
                cursor.execute(sql)
            assert raised.value.args[0] == code
        cursor.execute("INSERT INTO books (title) VALUES ('next')")
        assert cursor.lastrowid == 105  # 104 went to the row without a parent
