"""`millrace import` of files: CSV, JSON lines, Parquet and dumps."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from backend.imports.dump import inserted, statements
from backend.imports.files import mysql_type
from backend.imports.journal import DATABASE
from backend.imports.server import rows_of
from tests.wire.importing import connect, contents, run_import
from tests.wire.server import ServerThread

DUMP = Path(__file__).parents[1] / "clients" / "mysql8_dump.sql"


@pytest.fixture
def target(millrace: ServerThread) -> Iterator[Any]:
    with connect(millrace.port) as connection:
        rows_of(connection, "CREATE DATABASE files")
        rows_of(connection, "USE files")
        yield connection
        rows_of(connection, "DROP DATABASE files")


def test_csv_has_the_columns_of_its_header_and_the_types_of_its_values(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text('id,name,born,height\n1,"A, ""b""",2000-02-29,1.5\n2,,,\n3,"",1999-01-01,2\n')
    done = run_import(millrace.port, str(tmp_path / "people.csv"), "--database=files", "--primary-key=id")
    assert done.exit_code == 0 and "3 rows stored, 0 rejected" in done.output, done.output
    assert rows_of(target, "SELECT * FROM people ORDER BY id") == [
        (1, 'A, "b"', datetime.date(2000, 2, 29), 1.5),
        (2, None, None, None),
        (3, "", datetime.date(1999, 1, 1), 2.0),
    ]
    assert "PRIMARY KEY (`id`)" in rows_of(target, "SHOW CREATE TABLE people")[0][1]


def test_an_existing_table_says_what_values_mean_and_bad_rows_are_named(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    rows_of(target, "CREATE TABLE t (id INT PRIMARY KEY, n TINYINT NOT NULL, d DATE, more INT DEFAULT 7, s VARCHAR(3))")
    lines = [f"{number},2020-01-0{number % 9 + 1},{number % 100},abc" for number in range(1000)]
    lines[17] = "17,2020-13-01,1,abc"
    lines[500] = "500,2020-01-01,300,abc"
    lines[501] = "500,2020-01-01,30,abcd"
    lines[600] = "3,2020-01-01,3,abc"
    lines[700] = "700,2020-01-01"
    (tmp_path / "rows.csv").write_text("\n".join(["ID,d,n,s", *lines]) + "\n")
    done = run_import(millrace.port, str(tmp_path / "rows.csv"), "--database=files", "--table=t", "--chunk-rows=100")
    assert done.exit_code == 1 and "995 rows stored, 5 rejected" in done.output, done.output
    for text in ("id=17: ", "id=500: Out of range", "id=500: Data too long", "id=3: Duplicate entry '3'", "2 fields where 4 are wanted"):
        assert text in done.output
    assert rows_of(target, "SELECT COUNT(*), MIN(more), MAX(more), MAX(n) FROM t") == [(995, 7, 7, 99)]


def test_json_lines(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    text = '{"id": 1, "t": "x", "deep": {"a": [1, null]}}\n\n{"id": 2, "t": null}\nno json\n{"id": 3, "t": "ä😀", "deep": []}\n'
    with gzip.open(tmp_path / "documents.jsonl.gz", "wb") as file:
        file.write(text.encode())
    done = run_import(millrace.port, str(tmp_path / "documents.jsonl.gz"), "--database=files", "--primary-key=id")
    assert done.exit_code == 1 and "3 rows stored, 1 rejected" in done.output and "documents line 4: " in done.output
    assert rows_of(target, "SELECT id, t, deep FROM documents ORDER BY id") == [(1, "x", '{"a": [1, null]}'), (2, None, None), (3, "ä😀", "[]")]


def test_parquet_of_every_type_and_several_files(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    moment = datetime.datetime(2020, 2, 29, 1, 2, 3, 456789)
    columns = {
        "id": pa.array([1, 2], pa.uint32()),
        "small": pa.array([-128, None], pa.int8()),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "flag": pa.array([True, None]),
        "real": pa.array([0.1, None], pa.float32()),
        "exact": pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
        "day": pa.array([moment.date(), None]),
        "moment": pa.array([moment, None], pa.timestamp("us")),
        "zoned": pa.array([moment, None], pa.timestamp("ms", "UTC"), safe=False),
        "clock": pa.array([moment.time(), None], pa.time64("us")),
        "text": pa.array(["ä", None]).dictionary_encode(),
        "data": pa.array([b"\xff\x00", None]),
        "list": pa.array([[1, 2], None]),
    }
    table = pa.table(columns)
    for number in range(3):
        part = table.set_column(0, "id", pa.array([number * 2 + 1, number * 2 + 2], pa.uint32()))
        pa_parquet.write_table(part, tmp_path / f"part-{number}.parquet")
    done = run_import(millrace.port, str(tmp_path / "part-*.parquet"), "--database=files", "--table=parts", "--primary-key=id")
    assert done.exit_code == 0 and "6 rows stored, 0 rejected" in done.output, done.output
    rows = rows_of(target, "SELECT * FROM parts ORDER BY id")
    zoned = moment.replace(microsecond=456000)
    clock = datetime.timedelta(hours=1, minutes=2, seconds=3, microseconds=456789)
    assert rows[0][1:4] == (-128, 2**64 - 1, 1) and rows[0][4] == pytest.approx(0.1)
    assert rows[0][5:] == (Decimal("1.50"), moment.date(), moment, zoned, clock, "ä", b"\xff\x00", "[1, 2]")
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5, 6] and rows[5][1:] == (None,) * 12


def test_a_dump_of_mysql_8(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    compressed = tmp_path / "dump.sql.gz"
    compressed.write_bytes(gzip.compress(DUMP.read_bytes()))
    try:
        done = run_import(millrace.port, str(compressed))
        assert done.exit_code == 0, done.output
        found = contents(target, "shop8")
        assert [row[0] for row in found["authors"]] == [0, 1, 2, 3] and found["novels"] == [(100, "One", "Ann")]
        books = rows_of(target, "SELECT id, title, full_price, flags + 0, HEX(cover), token FROM books ORDER BY id")
        assert [tuple(map(str, row)) for row in books] == [
            ("100", "One", "3.00", "1", "0027225C0A0D1A", "book-novel"),
            ("101", "Two", "None", "31", "FFFE00", "None"),
            ("102", "日本 😀", "0.00", "None", "None", "t"),
        ]
    finally:
        rows_of(target, "DROP DATABASE IF EXISTS shop8")
        rows_of(target, "USE files")


def test_a_dump_that_failed_goes_on_where_it_was(millrace: ServerThread, target: Any, tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    rows = ",".join(f"({number},'it''s \\\\ ; {number}')" for number in range(100))
    begin = f"SET @x = 1;\nDROP TABLE IF EXISTS a;\nCREATE TABLE a (id INT, t VARCHAR(50));\nINSERT INTO `a` VALUES {rows};\n"
    dump.write_text(begin + "INSERT INTO missing VALUES (1);\nINSERT INTO a (t, id) VALUES (@x, 100);\n")
    command = (str(dump), "--database=files", "--chunk-rows=30")
    done = run_import(millrace.port, *command)
    assert done.exit_code == 1 and "table missing, which is not there" in done.output
    assert rows_of(target, "SELECT COUNT(*) FROM a") == [(100,)]
    rows_of(target, "CREATE TABLE missing (n INT)")
    done = run_import(millrace.port, *command)
    assert done.exit_code == 0 and "101 rows stored, 0 rejected" in done.output, done.output
    assert rows_of(target, "SELECT COUNT(*), COUNT(DISTINCT id), MAX(t) FROM a") == [(101, 101, "it's \\ ; 99")]
    assert rows_of(target, "SELECT t FROM a WHERE id = 100") == [("1",)]
    assert rows_of(target, f"SELECT COUNT(*) FROM {DATABASE}.jobs") == [(0,)]


def test_statements_of_a_script() -> None:
    class Stream:
        def __init__(self, text: bytes) -> None:
            self._pieces = [text[at : at + 7] for at in range(0, len(text), 7)]

        def read(self, _: int) -> bytes:
            return self._pieces.pop(0) if self._pieces else b""

    script = b"""-- a comment; of one line
    /* another; */ SELECT 'a;''b\\';' ;\n# more\nDELIMITER ;;\nCREATE TRIGGER x BEGIN a; b; END ;;\nDELIMITER ;\n/*!40101 SET a=1 */; SELECT 1-1, 4/2"""
    assert [each.strip() for each in statements(Stream(script))] == [
        "SELECT 'a;''b\\';'", "CREATE TRIGGER x BEGIN a; b; END", "/*!40101 SET a=1 */", "SELECT 1-1, 4/2",
    ]  # fmt: skip
    found = inserted("INSERT IGNORE INTO `d`.`t``x` (`a`, b) VALUES (1,NULL),\n(-1.5e3, _binary 'a\\0\\'b'), (0xFF0, 'it''s')")
    assert found is not None and (found.verb, found.database, found.table, found.columns) == ("INSERT IGNORE", "d", "t`x", ("a", "b"))
    assert found.rows == [["1", None], ["-1.5e3", b"a\0'b"], [b"\x0f\xf0", "it's"]]
    assert inserted("INSERT INTO t VALUES (NOW())") is None and inserted("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1") is None


def test_types_of_arrow() -> None:
    assert [mysql_type(each) for each in (pa.int16(), pa.uint8(), pa.string(), pa.timestamp("s"), pa.list_(pa.int8()))] == [
        "SMALLINT", "TINYINT UNSIGNED", "LONGTEXT", "DATETIME", "JSON",
    ]  # fmt: skip
    assert mysql_type(pa.string(), is_key=True) == "VARCHAR(255)"
