"""Numbers and dates written as texts, as many applications do: found by key like others, with MariaDB's answers."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

COLUMNS = {
    "number": ["5", "05", " 5", "5 ", "+5", "5.0", "5e0", "5.5", "-7", "abc", "", "5 apples", "0x5", "1e999", "99999999999", "-0"],
    "large": [
        "1234567890123456789", "1234567890123456788", "9007199254740993", "9007199254740992", "-9223372036854775808",
        "9223372036854775808", "18446744073709551615",
    ],
    "positive": ["18446744073709551615", "18446744073709551614", "-1", "0", "18446744073709551616"],
    "price": ["1.5", "1.50", "1.505", "15e-1", "-0.01", "abc", " 1.5"],
    "day": ["2024-02-29", "2024-2-29", "20240229", "2024-02-29 00:00:00", "2024-02-29 10:00:00", "24-02-29", "0000-00-00", "2024.02.29"],
    "moment": [
        "2024-02-29 10:11:12.5", "2024-02-29 10:11:12.500", "2024-02-29 10:11:12", "20240229101112.5", "2024-02-29T10:11:12.5", "2024-02-29",
    ],
}  # fmt: skip
TABLE = (
    "CREATE TABLE things (id INT PRIMARY KEY, number INT, large BIGINT, positive BIGINT UNSIGNED, price DECIMAL(10,2), day DATE,"
    " moment DATETIME(3), KEY (large), KEY (day))"
)
ROWS = [
    (1, 5, 1234567890123456789, 18446744073709551615, "1.50", "2024-02-29", "2024-02-29 10:11:12.500"),
    (2, -7, 1234567890123456788, 0, "-0.01", "2024-03-01", "2024-02-29 10:11:12.000"),
    (3, 0, 9007199254740993, 18446744073709551614, "0.00", "2024-02-28", "2024-02-29 00:00:00"),
    (4, 2147483647, 9007199254740992, 7, "1.51", None, None),
    (5, None, -9223372036854775808, None, None, "2024-02-29", "2024-03-01 10:11:12.500"),
]
USES = 4
"""Evaluated at first, then from a view, then from what is kept of its answers."""


@pytest.mark.parametrize("column", COLUMNS)
def test_texts_are_compared_as_by_mariadb(column: str, millrace: ServerThread, mariadb: MariaDB) -> None:
    answers: list[dict[Any, Any]] = []
    for port in (millrace.port, mariadb.port):
        with pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True) as connection:
            cursor = connection.cursor()
            for sql in ("DROP DATABASE IF EXISTS quoted", "CREATE DATABASE quoted", "USE quoted", "SET sql_mode = ''", TABLE):
                cursor.execute(sql)
            cursor.executemany("INSERT INTO things VALUES (%s, %s, %s, %s, %s, %s, %s)", ROWS)
            found: dict[Any, Any] = {}
            texts = COLUMNS[column]
            for use in range(USES):
                for text in texts:
                    for sql in (
                        f"SELECT id FROM things WHERE {column} = %s",
                        f"SELECT COUNT(*), MAX(id) FROM things WHERE {column} = %s",
                        f"SELECT id FROM things WHERE NOT ({column} = %s)",
                        f"SELECT id FROM things WHERE {column} > %s",
                        f"SELECT a.id, b.id FROM things a JOIN things b ON b.id <= a.id WHERE a.{column} = %s",
                        f"SELECT id FROM things WHERE {column} IN (%s, '77')",
                        f"SELECT {column}, COUNT(*) FROM things WHERE {column} IN (%s, '77', NULL) GROUP BY {column}",
                        f"SELECT id FROM things WHERE {column} IN (%s{', %s' * 9}) OR id = 3",
                    ):
                        cursor.execute(sql, [text] * sql.count("%s"))
                        found[use, text, sql] = sorted(cursor.fetchall(), key=repr)
            answers.append(found)
    assert {key: rows for key, rows in answers[0].items() if rows != answers[1][key]} == {}
