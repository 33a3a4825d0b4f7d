"""CREATE TABLE … SELECT beside MariaDB."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

STATEMENTS = [
    "CREATE TABLE made AS SELECT id, name FROM source WHERE id < 3",
    "CREATE TABLE made SELECT id + 1 AS next, 'x' AS tag, name FROM source",
    "CREATE TABLE made (extra INT DEFAULT 7, id BIGINT PRIMARY KEY) SELECT id, name FROM source",
    "CREATE TEMPORARY TABLE made (KEY (name)) ENGINE=InnoDB AS (SELECT name, SUM(n) AS total FROM source GROUP BY name)",
    "CREATE TABLE made AS SELECT id FROM source UNION SELECT n FROM source",
    "CREATE TABLE IF NOT EXISTS made AS SELECT id FROM source",
    "CREATE TABLE made (id INT PRIMARY KEY) AS SELECT 1 AS id UNION ALL SELECT 1",
    "CREATE TABLE made IGNORE AS SELECT n, made_at, price FROM source",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_table_and_its_rows_are_mariadbs(sql: str, millrace: ServerThread, mariadb: MariaDB) -> None:
    answers: list[Any] = []
    for port in (millrace.port, mariadb.port):
        with pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute("DROP DATABASE IF EXISTS made")
            cursor.execute("CREATE DATABASE made COLLATE utf8mb4_general_ci")
            cursor.execute("USE made")
            cursor.execute(
                "CREATE TABLE source (id INT NOT NULL PRIMARY KEY, name VARCHAR(20), n INT, price DECIMAL(8,2), made_at DATETIME)"
            )
            cursor.execute("INSERT INTO source VALUES (1, 'a', 5, 1.5, '2024-01-01'), (2, 'b', 6, 2, NULL), (3, 'a', 7, 0, NULL)")
            try:
                answers.append([cursor.execute(sql)])
                cursor.execute("SELECT * FROM made")
                answers[-1] += [[each[0] for each in cursor.description], sorted(cursor.fetchall(), key=repr)]
            except pymysql.err.MySQLError as error:
                answers.append(error.args[0])
                with pytest.raises(pymysql.err.ProgrammingError):
                    cursor.execute("SELECT * FROM made")
    assert answers[0] == answers[1]


SOURCE = """CREATE TABLE source (
    id INT AUTO_INCREMENT PRIMARY KEY COMMENT 'the id', a INT NOT NULL DEFAULT 5, b VARCHAR(10) DEFAULT 'x' COMMENT 'it''s',
    c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, d DATETIME NULL, e INT NOT NULL,
    f INT AS (a + 1) STORED COMMENT 'computed', h DECIMAL(5,2) NOT NULL DEFAULT 1.5, k ENUM('p','q') NOT NULL DEFAULT 'q', l TEXT
)"""


@pytest.mark.parametrize(
    "select",
    [
        "SELECT * FROM source",
        "SELECT b AS bb, a AS aa, CONCAT(b) AS c FROM source",
        "SELECT s.e, t.a, t.b FROM source s LEFT JOIN source t ON t.id = s.a",
        "SELECT MAX(a) AS a, b FROM source GROUP BY b",
    ],
)
def test_columns_keep_their_defaults_and_comments(select: str, millrace: ServerThread, mariadb: MariaDB) -> None:
    answers: list[Any] = []
    for port in (millrace.port, mariadb.port):
        with pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True) as connection:
            cursor = connection.cursor()
            for sql in ("DROP DATABASE IF EXISTS made", "CREATE DATABASE made", "USE made", SOURCE, f"CREATE TABLE made AS {select}"):
                cursor.execute(sql)
            cursor.execute(
                "SELECT column_name, is_nullable, LOWER(TRIM(\"'\" FROM column_default)), column_comment"
                " FROM information_schema.columns WHERE table_schema = 'made' AND table_name = 'made' ORDER BY ordinal_position"
            )
            answers.append(
                [(name, nullable, (default or "null").replace("()", ""), comment) for name, nullable, default, comment in cursor]
            )
    assert answers[0] == answers[1]
