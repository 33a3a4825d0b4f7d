"""general_log and slow_query_log: MySQL's formats, every statement, no passwords, nothing while they are off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from backend.execution.embedded import open_embedded
from mysql_adapter.sessions import query_log
from tests.wire.server import ServerThread


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    async def open_database() -> Any:
        return await open_embedded(tmp_path / "data")

    (tmp_path / "logs").mkdir()
    with ServerThread(open_database, logs=tmp_path / "logs") as running:
        yield running


@pytest.fixture
def run(server: ServerThread) -> Iterator[Any]:
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)

    def execute(sql: str) -> Any:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())

    yield execute
    connection.close()


def test_the_general_log_has_every_statement_while_it_is_on(run: Any, server: ServerThread, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "general.log"
    run("CREATE DATABASE d")
    run("CREATE TABLE d.t (id INT PRIMARY KEY)")
    query = "SELECT * FROM d.t WHERE id = 1"
    for _ in range(5):  # often enough for a shortcut
        run(query)
    assert not path.exists()
    run("SET GLOBAL general_log = ON")
    for _ in range(5):
        run(query)
    run("CREATE USER someone IDENTIFIED BY 'hidden word'")
    with pytest.raises(pymysql.err.MySQLError):
        run("SELECT wrong")
    pymysql.connect(host="127.0.0.1", port=server.port, user="root", database="d").close()
    run("SET GLOBAL general_log = OFF")
    run("SELECT 'unseen'")
    text = path.read_text()
    assert text.startswith("millrace, Version: 8.0.") and "Time                 Id Command    Argument\n" in text
    assert len(re.findall(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\t +\d+ Query\tSELECT \* FROM d\.t WHERE id = 1$", text, re.MULTILINE)) == 5
    assert re.search(r"Connect\troot@localhost on d using ", text) and re.search(r"Quit\t$", text, re.MULTILINE)
    assert "SELECT wrong" in text and "CREATE USER someone IDENTIFIED" in text
    assert "hidden word" not in text and "unseen" not in text
    assert path.stat().st_mode & 0o077 == 0


def test_the_slow_log_has_what_took_long(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "slow.log"
    run("SET long_query_time = 0.05")
    assert float(run("SELECT @@long_query_time")[0][0]) == 0.05
    before = int(run("SHOW GLOBAL STATUS LIKE 'Slow_queries'")[0][1])
    run("SELECT SLEEP(0.1)")
    assert int(run("SHOW GLOBAL STATUS LIKE 'Slow_queries'")[0][1]) == before + 1 and not path.exists()
    run("SET GLOBAL slow_query_log = 1")
    run("SELECT SLEEP(0.11)")
    run("SELECT 1")
    found = re.search(
        r"# Time: \S+Z\n# User@Host: root\[root\] @ localhost \[\]  Id: +\d+\n"
        r"# Query_time: 0\.\d{6}  Lock_time: 0\.000000 Rows_sent: 1  Rows_examined: \d+\n"
        r"SET timestamp=\d+;\nSELECT SLEEP\(0\.11\);\n",
        path.read_text(),
    )
    assert found and "SELECT 1;" not in path.read_text()


def test_files_are_begun_anew_and_stay_in_their_folder(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    run("SET GLOBAL general_log_file = 'other.log'")
    assert run("SELECT @@global.general_log_file") == [(str(folder / "other.log"),)]
    run("SET GLOBAL general_log = 1")
    run("SELECT 'first'")
    (folder / "other.log").rename(folder / "other.log.1")
    run("FLUSH GENERAL LOGS")
    run("SELECT 'second'")
    assert "first" in (folder / "other.log.1").read_text() and "second" not in (folder / "other.log.1").read_text()
    assert "second" in (folder / "other.log").read_text()
    for name in ("/etc/passwd", "../escaped", "", "."):
        with pytest.raises(pymysql.err.MySQLError) as raised:
            run(f"SET GLOBAL general_log_file = '{name}'")
        assert raised.value.args[0] == 1231
    run("SET GLOBAL log_output = 'NONE'")
    run("SELECT 'third'")
    assert "third" not in (folder / "other.log").read_text()


def test_a_full_file_is_moved_aside_once_by_several_adapters(run: Any, server: ServerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_log, "FILE_BYTES_MAX", 20_000)
    folder = tmp_path / "logs"

    async def open_other() -> Any:
        return await open_embedded(tmp_path / "other")

    with ServerThread(open_other, logs=folder) as other:
        connection = pymysql.connect(host="127.0.0.1", port=other.port, user="root", autocommit=True)
        executes = (run, lambda sql: connection.cursor().execute(sql))
        for execute in executes:
            execute("SET GLOBAL general_log = ON")
        for number in range(150):
            for execute in executes:
                execute(f"SELECT {number}, '{'x' * 100}'")
        connection.close()
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["general.log", "general.log.1", "general.log.2"]
    text = "".join((folder / name).read_text() for name in reversed(files))
    assert re.findall(r"SELECT (\d+), 'x", text) == [str(number) for number in range(150) for _ in executes]
