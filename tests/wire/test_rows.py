"""Rows byte for byte as MariaDB sends them, in both protocols."""

from __future__ import annotations

import struct
from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.raw import RawClient
from tests.wire.server import ServerThread
from tests.wire.test_types import COLUMNS, ROWS

CREATE = f"CREATE TABLE same (id INT PRIMARY KEY, {', '.join(f'{name} {type}' for name, type in COLUMNS.items())})"
MORE = [
    {"i": 1, "ti": "-00:00:01", "ti3": "-12:34:56.7", "dt6": "2024-01-01 00:00:00.000001", "f": 3.4e38, "d": 1e-7, "y": 0},
    {"i": 2, "ti": "100:00:00", "ti3": "838:59:59", "dt6": "2024-01-01 12:00:00", "f": 1e-38, "d": 123456789012345680, "y": 2155},
    {"i": 3, "f": 1.17549e-38, "d": 1e15, "dec1": "0.1", "z": 1234567},
    {"i": 4, "f": 16777216, "d": 1e14, "dec2": "-1"},
    {"i": 5, "f": 0.1, "d": 0.1 + 0.2, "c": "a  ", "v": "b  "},
    {"i": 6, "f": -1.5, "d": 1.7976931348623157e308, "bits": 4095},
    {"i": 7, "f": 100000, "d": 5e-324, "bits": 1},
]
EXPRESSIONS = [
    "1", "-1", "18446744073709551615", "'text'", "NULL", "1.50", "1e0", "1.5e300", "0.1e0", "1/3", "7 DIV 2", "2*1.5", "1=1",
    "CAST('2024-02-29' AS DATE)", "CAST('2024-02-29 01:02:03' AS DATETIME)", "CAST('2024-02-29 01:02:03.5' AS DATETIME(3))",
    "CAST('-01:02:03' AS TIME)", "CAST('01:02:03.000001' AS TIME(6))", "_binary'\\0x'", "x'00ff'", "CAST('abc' AS CHAR(2))",
    "CAST(5 AS UNSIGNED)", "CAST(-5 AS SIGNED)", "CAST(1.005 AS DECIMAL(5,2))", "REPEAT('x', 300)", "CONCAT('a', 1)",
    "CAST('x' AS BINARY(3))", "IF(1, 'a', 2)", "COALESCE(NULL, 1.5)", "CASE WHEN 0 THEN 1 ELSE 'x' END",
]  # fmt: skip


def insert(cursor: Any, number: int, row: dict[str, Any]) -> None:
    values = [int.from_bytes(v, "big") if name == "bits" and isinstance(v, bytes) else v for name, v in row.items()]
    cursor.execute(f"INSERT INTO same (id, {', '.join(row)}) VALUES (%s{', %s' * len(row)})", [number, *values])


@pytest.fixture(scope="module")
def both(millrace: ServerThread, mariadb: MariaDB) -> list[RawClient]:
    clients = []
    for port in (millrace.port, mariadb.port):
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, charset="utf8mb4")
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS bytes CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute("USE bytes")
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES'")
        cursor.execute(CREATE)
        for number, row in enumerate([*ROWS, *MORE]):
            insert(cursor, number, row)
        connection.close()
        client = RawClient(port)
        client.query("USE bytes")
        client.query("SET NAMES utf8mb4")
        client.query("SET time_zone = '+00:00'")
        clients.append(client)
    return clients


def binary(client: RawClient, sql: str) -> list[bytes]:
    client.command(0x16, sql.encode())
    answer = client.read_ok()
    _, statement, columns, parameters, _, _ = struct.unpack("<BIHHBH", answer)
    assert parameters == 0
    for _ in range(columns + 1):
        client.read()
    client.command(0x17, struct.pack("<IBI", statement, 0, 1))
    return client.read_result()


@pytest.mark.parametrize("column", COLUMNS)
def test_stored_values(both: list[RawClient], column: str) -> None:
    sql = f"SELECT {column} FROM same ORDER BY id"
    ours, theirs = (client.query(sql) for client in both)
    assert ours == theirs
    ours, theirs = (binary(client, sql) for client in both)
    assert ours == theirs


def test_nulls_at_every_position(both: list[RawClient]) -> None:
    sql = f"SELECT {', '.join(COLUMNS)} FROM same ORDER BY id"
    ours, theirs = (binary(client, sql) for client in both)
    assert ours == theirs


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_computed_values(both: list[RawClient], expression: str) -> None:
    ours, theirs = (client.query(f"SELECT {expression}") for client in both)
    assert ours == theirs


@pytest.mark.parametrize("zone", ["+05:30", "-11:00"])
def test_timestamps_follow_the_time_zone(both: list[RawClient], zone: str) -> None:
    for client in both:
        client.query(f"SET time_zone = '{zone}'")
    try:
        ours, theirs = (client.query("SELECT ts, dt FROM same ORDER BY id") for client in both)
        assert ours == theirs
        ours, theirs = (binary(client, "SELECT ts, dt FROM same ORDER BY id") for client in both)
        assert ours == theirs
        ours, theirs = (client.query("SELECT id FROM same WHERE ts > '2024-01-01' AND HOUR(ts) < 12") for client in both)
        assert ours == theirs
    finally:
        for client in both:
            client.query("SET time_zone = '+00:00'")


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 33, 271, 272, 273, 1000])
def test_every_row_is_sent_once_however_many_there_are(run: Any, count: int) -> None:
    rows = run(f"WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < {count}) SELECT n FROM c ORDER BY n")
    assert [n for (n,) in rows] == list(range(1, count + 1))


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1", "binary", "NULL", "cp1251", "gbk"])
def test_names_and_charsets_of_columns_follow_character_set_results(both: list[RawClient], charset: str) -> None:
    found = []
    for client in both:
        client.query("DROP TABLE IF EXISTS named")
        client.query("CREATE TABLE named (id INT PRIMARY KEY, `größe` VARCHAR(20) COLLATE utf8mb4_general_ci)")
        client.query("INSERT INTO named VALUES (1, 'grün')")
        client.query(f"SET character_set_results = {charset}")
        client.command(3, "SELECT `größe` AS `Maß`, `größe` FROM named".encode())
        assert client.read_ok() == b"\2"
        definitions = [client.read(), client.read()]
        assert client.read()[0] == 0xFE
        # Of utf8mb4 MySQL's default collation is another than MariaDB's.
        found.append([each.replace(b"\x0c\xff\0P", b"\x0c\x2d\0P") for each in definitions] + client.read_rows())
        client.query("SET NAMES utf8mb4")
    assert found[0] == found[1]
