"""What sessions at different adapters of one cluster have in common: accounts, locks, KILL, variables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pymysql
import pytest

from backend.processes.settings import DEPLOYMENT_FILE, Deployment
from controller.registry import Registry
from controller.sql.definitions.temporary import PREFIX
from tests.serving import MillraceServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("sessions") / "data", "--adapters=2")
    yield server
    server.kill()


def one(connection: Any, sql: str) -> Any:
    cursor = connection.cursor()
    cursor.execute(sql)
    rows = cursor.fetchall()
    return rows[0][0] if rows else None


@pytest.fixture
def pair(server: MillraceServer) -> Iterator[tuple[Any, Any]]:
    """Two connections to different adapters: their numbers tell."""
    opened: dict[int, Any] = {}
    while len(opened) < 2:
        connection = server.connect()
        number = one(connection, "SELECT CONNECTION_ID()") % 2
        if number in opened:
            connection.close()
        else:
            opened[number] = connection
    yield opened[0], opened[1]
    for connection in opened.values():
        if connection.open:
            connection.close()


def test_start_warns_of_root_without_password(server: MillraceServer) -> None:
    assert any("root from localhost has no password" in line for line in server.output)


def test_an_account_made_at_one_adapter_is_known_at_the_other(server: MillraceServer, pair: tuple[Any, Any]) -> None:
    first, _ = pair
    one(first, "CREATE DATABASE d")
    one(first, "CREATE TABLE d.t (id INT PRIMARY KEY)")
    for number in range(6):
        one(first, f"CREATE USER u{number} IDENTIFIED BY 'secret-{number}'")
        one(first, f"GRANT SELECT ON d.t TO u{number}")
        for _ in range(3):
            connection = server.connect(user=f"u{number}", password=f"secret-{number}")
            assert one(connection, "SELECT COUNT(*) FROM d.t") == 0
            with pytest.raises(pymysql.err.OperationalError, match="1142"):
                one(connection, "DELETE FROM d.t")
            connection.close()
        one(first, f"ALTER USER u{number} IDENTIFIED BY 'other'")
        server.connect(user=f"u{number}", password="other").close()
        with pytest.raises(pymysql.err.OperationalError, match="1045"):
            server.connect(user=f"u{number}", password=f"secret-{number}")


def test_no_log_has_a_password(server: MillraceServer) -> None:
    for path in (server.data / "logs").iterdir():
        assert "secret-1" not in path.read_text(errors="replace"), path


def test_locks_exclude_across_adapters(pair: tuple[Any, Any]) -> None:
    first, second = pair
    assert one(first, "SELECT GET_LOCK('job', 0)") == 1
    assert one(second, "SELECT GET_LOCK('job', 0.1)") == 0
    assert one(second, "SELECT IS_USED_LOCK('job')") == one(first, "SELECT CONNECTION_ID()")
    first.close()
    assert one(second, "SELECT GET_LOCK('job', 10)") == 1
    assert one(second, "SELECT RELEASE_LOCK('job')") == 1


def test_processes_are_seen_and_killed_across_adapters(pair: tuple[Any, Any]) -> None:
    first, second = pair
    number = one(second, "SELECT CONNECTION_ID()")
    assert one(first, f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {number}") == 1
    one(first, f"KILL {number}")
    with pytest.raises(pymysql.err.MySQLError):
        one(second, "SELECT 1")
    with pytest.raises(pymysql.err.MySQLError, match="1094"):
        one(first, f"KILL {number}")


def test_views_of_the_worker_are_seen_at_every_adapter(pair: tuple[Any, Any]) -> None:
    first, second = pair
    one(first, "CREATE DATABASE viewed")
    one(first, "CREATE TABLE viewed.t (id INT PRIMARY KEY, g INT)")
    one(first, "INSERT INTO viewed.t VALUES (1, 1), (2, 1), (3, 2)")
    query = "SELECT g, COUNT(*) AS n FROM viewed.t WHERE g = {} GROUP BY g"
    for _ in range(3):
        one(first, query.format(1))
    rows = "SELECT CONCAT(state, ' ', key_count) FROM millrace.views WHERE tables = 'viewed.t'"
    assert one(second, rows) == "partial 1"
    assert " 1 keys, 1 rows, " in one(second, "EXPLAIN FORMAT=TREE " + query.format(2))
    assert one(first, "SELECT COUNT(*) > 0 FROM millrace.arrangements") == 1


def test_global_variables_are_those_of_all_adapters(pair: tuple[Any, Any]) -> None:
    first, second = pair
    one(first, "SET GLOBAL group_concat_max_len = 4321")
    assert one(second, "SELECT @@GLOBAL.group_concat_max_len") == 4321


def test_what_one_adapter_has_defined_all_others_know(server: MillraceServer, pair: tuple[Any, Any]) -> None:
    """As soon as it is acknowledged, also where it was answered from memory just before."""
    first, second = pair
    one(first, "CREATE DATABASE known")
    one(first, "CREATE TABLE known.t (id INT PRIMARY KEY, c0 INT)")
    one(first, "CREATE USER reader")
    for number in range(1, 9):
        one(first, "INSERT INTO known.t (id, c0) VALUES (1, 5)")
        for _ in range(5):
            assert one(second, "SELECT c0 FROM known.t WHERE id = 1") == 5
        one(first, "TRUNCATE TABLE known.t")
        assert one(second, "SELECT c0 FROM known.t WHERE id = 1") is None
        one(first, f"ALTER TABLE known.t ADD COLUMN c{number} INT")
        with second.cursor() as cursor:
            cursor.execute("SELECT * FROM known.t WHERE id = 1")
            assert len(cursor.description) == number + 2
        one(first, "GRANT SELECT ON known.t TO reader")
        readers = [server.connect(user="reader") for _ in range(4)]
        for reader in readers * 4:
            one(reader, "SELECT c0 FROM known.t WHERE id = 1")
        one(first, "REVOKE SELECT ON known.t FROM reader")
        for reader in readers:
            with pytest.raises(pymysql.err.OperationalError, match="1142"):
                one(reader, "SELECT c0 FROM known.t WHERE id = 1")
            reader.close()


def test_status_counts_the_sessions_of_all_adapters(pair: tuple[Any, Any]) -> None:
    first, second = pair
    counted = "SHOW GLOBAL STATUS WHERE Variable_name = 'Questions'"

    def count(connection: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute(counted)
            return int(cursor.fetchone()[1])

    before = count(first)
    for _ in range(10):
        one(second, "SELECT 1")
    assert count(first) > before + 10 and count(second) > before + 11


def test_temporary_tables_of_a_killed_adapter_are_dropped_by_its_successor(
    server: MillraceServer, pair: tuple[Any, Any]
) -> None:
    mine, other = pair
    number = one(mine, "SELECT CONNECTION_ID()") % 2
    for sql in ("CREATE DATABASE IF NOT EXISTS gone", "CREATE TEMPORARY TABLE gone.t (id INT)"):
        one(mine, sql)
    one(other, "CREATE TEMPORARY TABLE gone.mine (id INT)")
    assert temporary(server) == 2
    processes = server.status()["processes"]
    psutil.Process(next(each["process"] for each in processes if each["name"] == f"adapter-{number}")).kill()
    deadline = time.monotonic() + 60
    while temporary(server) != 1:
        assert time.monotonic() < deadline
    assert one(other, "SELECT COUNT(*) FROM gone.mine") == 0


def temporary(server: MillraceServer) -> int:
    """How many temporary tables are in the catalog."""
    deployment = Deployment.load(server.data / DEPLOYMENT_FILE)
    registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
    registry.start(20.0)
    try:
        return sum(table.name.startswith(PREFIX) for table in registry.load_catalog().tables.values())
    finally:
        registry.stop()
