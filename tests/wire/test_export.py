"""`millrace export`: files that hold what the tables held at one moment, and can be loaded again."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pymysql
import pytest
from click.testing import CliRunner
from pymysql.constants import CLIENT

from backend.cli import main
from tests.wire.worker_server import WorkerServer, worker_server

COLUMNS = (
    "id INT PRIMARY KEY, n BIGINT UNSIGNED, d DECIMAL(40, 10), f DOUBLE, b BIT(9), t TIME(3), at DATETIME(6), day DATE, stamp TIMESTAMP NULL, "
    "y YEAR, name VARCHAR(50), data VARBINARY(20), e ENUM('a', 'b'), j JSON, KEY (name)"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("export")) as found:
        with connect(found) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d; USE d; SET sql_mode = ''; SET time_zone = '+00:00'")
            while cursor.nextset():
                pass
            cursor.execute(f"CREATE TABLE t ({COLUMNS})")
            row = "18446744073709551615, 1.5, 0.1, b'101', '-12:30:00.5', '2020-01-02 03:04:05.000006', '0000-00-00', '2020-01-01 00:00:00'"
            cursor.execute(f"INSERT INTO t VALUES (1, {row}, 2024, 'it''s \\\\ \"ü\"\\n', x'00ff27', 'a', '[1]'), (3, {row}, 1999, '', '', 'b', '{{}}')")
            cursor.execute("INSERT INTO t (id) VALUES (2)")
            cursor.execute("CREATE TABLE many (id INT PRIMARY KEY)")
            cursor.executemany("INSERT INTO many VALUES (%s)", [(n,) for n in range(5000)])
        yield found


def connect(server: WorkerServer, database: str | None = None) -> Any:
    return pymysql.connect(
        host="127.0.0.1", port=server.port, user="root", database=database, autocommit=True, charset="utf8mb4", client_flag=CLIENT.MULTI_STATEMENTS
    )


def run(server: WorkerServer, folder: Path, *arguments: str) -> str:
    url = f"mysql://root@127.0.0.1:{server.port}/d"
    result = CliRunner().invoke(main, ["export", f"--url={url}", f"--to={folder}", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_sql_is_loaded_again_as_it_was(server: WorkerServer, tmp_path: Path) -> None:
    assert "t: 3 rows" in run(server, tmp_path, "--format=sql")
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE copy; USE copy")
        while cursor.nextset():
            pass
        for name in ("t", "many"):
            cursor.execute((tmp_path / f"{name}.sql").read_text())
            while cursor.nextset():
                pass
            cursor.execute(f"SELECT * FROM d.{name} ORDER BY id")
            expected = cursor.fetchall()
            cursor.execute(f"SELECT * FROM copy.{name} ORDER BY id")
            assert cursor.fetchall() == expected
        cursor.execute("SHOW CREATE TABLE copy.t")
        assert "KEY `name`" in cursor.fetchone()[1]


def test_parquet_has_the_columns_types(server: WorkerServer, tmp_path: Path) -> None:
    run(server, tmp_path, "t", "many")
    found = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert found["n"].to_pylist() == [2**64 - 1, None, 2**64 - 1]
    assert [str(each) for each in found["d"].to_pylist()] == ["1.5000000000", "None", "1.5000000000"]
    assert found["t"].to_pylist()[0].total_seconds() == -45000.5
    assert found["day"].to_pylist() == [None] * 3  # no calendar has them
    assert found["data"].to_pylist() == [b"\0\xff'", None, b""]
    assert pyarrow.parquet.read_table(tmp_path / "many.parquet")["id"].to_pylist() == list(range(5000))


def test_csv_tells_null_from_an_empty_text(server: WorkerServer, tmp_path: Path) -> None:
    run(server, tmp_path, "--format=csv", "t")
    with (tmp_path / "t.csv").open(newline="") as file:
        names, first, _, third = csv.reader(file)
    assert names[:2] == ["id", "n"]
    moments = ["-12:30:00.500", "2020-01-02 03:04:05.000006", "0000-00-00", "2020-01-01 00:00:00"]
    assert first == ["1", "18446744073709551615", "1.5000000000", "0.1", "5", *moments, "2024", 'it\'s \\ "ü"\n', "00ff27", "a", "[1]"]
    assert third[9:] == ["1999", "", "", "b", "{}"]
    text = (tmp_path / "t.csv").read_text()
    assert '\n"2"' + "," * 13 + "\n" in text and '"1999","","","b"' in text


def test_what_is_not_there_is_named(server: WorkerServer, tmp_path: Path) -> None:
    url = f"mysql://root@127.0.0.1:{server.port}/d"
    result = CliRunner().invoke(main, ["export", f"--url={url}", f"--to={tmp_path}", "missing"])
    assert result.exit_code == 1 and "missing" in result.output
    assert not list(tmp_path.iterdir())
