"""LOAD DATA LOCAL INFILE, beside MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

TABLE = "CREATE TABLE loaded (id INT PRIMARY KEY, name VARCHAR(10) DEFAULT 'none', n INT NOT NULL DEFAULT 7, b VARBINARY(20))"


@pytest.fixture
def both(millrace: ServerThread, mariadb: MariaDB) -> Iterator[list[Any]]:
    connections = [
        pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, local_infile=True, charset="utf8mb4")
        for port in (millrace.port, mariadb.port)
    ]
    for connection in connections:
        cursor = connection.cursor()
        cursor.execute("SET GLOBAL local_infile = 1")
        cursor.execute("CREATE DATABASE loads CHARACTER SET utf8mb4")
        cursor.execute("USE loads")
        cursor.execute(TABLE)
    yield connections
    for connection in connections:
        connection.cursor().execute("DROP DATABASE loads")
        connection.close()


def outcome(connection: Any, sql: str) -> Any:
    cursor = connection.cursor()
    try:
        affected = cursor.execute(sql)
        message = cursor._result.message
        warned = connection.show_warnings()
    except pymysql.err.MySQLError as error:
        return error.args[0]
    cursor.execute("SELECT * FROM loaded ORDER BY id")
    rows = cursor.fetchall()
    # NULL for NOT NULL is 1263 only in LOAD DATA; INSERT IGNORE has 1048 for it.
    codes = sorted(1263 if code == 1048 else code for _, code, _ in warned or ())
    return affected, codes, message, rows


@pytest.mark.parametrize(
    ("data", "clauses"),
    [
        (b"1\ta\t5\tx\n2\tb\t6\ty\n", ""),
        (b"1\t\\N\t5\t\xff\xfe\n", ""),
        (b"1\ta\n2\tb\t3\tx\tmore\n", ""),
        (b"1\tlonger than ten\tabc\tx\n1\tagain\t1\ty\n2\tok\t\\N\t\n", ""),
        (b"1\ta\t5\tx\n1\tb\t6\ty\n", "REPLACE"),
        (b'head\n"1","a, b","5",NULL\r\n"2","c""d",6,"z"\r\n', "CSV"),
        (b"5,Anna,ignored\n6,Bob,ignored\n", "SET"),
        (b"5,Anna,ignored\n6,Bob,ignored\n", "VARIABLE"),
        ("1\t\xe9\t5\tx\n".encode("latin-1"), "LATIN"),
    ],
)
def test_files_are_loaded_as_mariadb_loads_them(both: list[Any], tmp_path: Path, data: bytes, clauses: str) -> None:
    for connection in both:
        connection.cursor().execute("SET @more = 1.5")
    path = tmp_path / "data"
    path.write_bytes(data)
    into = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded "
    sql = {
        "": into,
        "REPLACE": into.replace("INTO", "REPLACE INTO"),
        "CSV": into + r"""FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' LINES TERMINATED BY '\r\n' IGNORE 1 LINES""",
        "VARIABLE": into + "FIELDS TERMINATED BY ',' (id, name, @x) SET n = @more",
        "SET": into + "FIELDS TERMINATED BY ',' (id, @name, @x) SET name = UPPER(CONCAT(@name, '!')), n = id * 2",
        "LATIN": into + "CHARACTER SET latin1",
    }[clauses]
    if clauses == "CSV":
        path.write_bytes(data.replace(b"head\n", b"head\r\n"))
    ours, theirs = (outcome(connection, sql) for connection in both)
    assert ours == theirs


def test_large_files_and_transactions(both: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_text("".join(f"{number}\tname{number % 1000}\t{number}\tx\n" for number in range(20_000)))
    connection = both[0]
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded")
    assert cursor.rowcount == 20_000
    cursor.execute("ROLLBACK")
    cursor.execute("SELECT COUNT(*) FROM loaded")
    assert cursor.fetchone() == (0,)
    cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded")
    cursor.execute("SELECT COUNT(*), SUM(n) FROM loaded")
    assert cursor.fetchone() == (20_000, sum(range(20_000)))


def test_what_is_wrong_is_said_and_the_connection_goes_on(both: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"1\ta\t5\tx\n" * 10_000)
    connection = both[0]
    cursor = connection.cursor()
    for code, sql in (
        (1146, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE missing"),
        (1054, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded (id, nosuch)"),
        (1064, f"LOAD DATA LOCAL INFILE '{path}' INTO loaded"),
        (1290, f"LOAD DATA INFILE '{path}' INTO TABLE loaded"),
    ):
        with pytest.raises(pymysql.err.MySQLError) as raised:
            cursor.execute(sql)
        assert raised.value.args[0] == code
    cursor.execute("SET GLOBAL local_infile = 0")
    with pytest.raises(pymysql.err.MySQLError, match="3948"):
        cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded")
    cursor.execute("SET GLOBAL local_infile = 1")
    with pytest.raises(pymysql.err.MySQLError, match="1017"):
        cursor.execute(f"LOAD DATA LOCAL INFILE '{path}.missing' INTO TABLE loaded")
    cursor.execute("SELECT COUNT(*) FROM loaded")
    assert cursor.fetchone() == (0,)


def test_what_is_assigned_may_be_read_only_by_those_who_may(both: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"1\n")
    for connection in both:
        root = connection.cursor()
        for sql in (
            "DROP TABLE IF EXISTS own, hidden", "DROP USER IF EXISTS loader", "CREATE USER loader IDENTIFIED BY 'pw'",
            "CREATE TABLE own (id INT PRIMARY KEY, a INT, b INT)", "CREATE TABLE hidden (secret INT)", "INSERT INTO hidden VALUES (42)",
            "GRANT SELECT, INSERT (id, a) ON own TO loader",
        ):  # fmt: skip
            root.execute(sql)
        with pymysql.connect(
            host="127.0.0.1", port=connection.port, user="loader", password="pw", database="loads", local_infile=True, autocommit=True
        ) as loader:
            cursor = loader.cursor()
            into = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE own (id)"
            for code, assigned in ((1142, "a = (SELECT MAX(secret) FROM hidden)"), (1143, "b = 1")):
                with pytest.raises(pymysql.err.MySQLError) as raised:
                    cursor.execute(f"{into} SET {assigned}")
                assert raised.value.args[0] == code
            cursor.execute(f"{into} SET a = id + 1")
            cursor.execute("SELECT * FROM own")
            assert cursor.fetchall() == ((1, 2, None),)
        root.execute("DROP USER loader")
