"""CALL millrace.…: tables and SELECTs as Arrow record batches, as of one epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from backend.network.server_address import ServerAddress
from backend.spark.scanning import parts_of
from backend.spark.scanning import read_part as read_batches
from tests.wire.worker_server import WorkerServer, worker_server

COUNT = 20_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("scans")) as found:
        connection = connect(found, None)
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, name VARCHAR(40), amount DECIMAL(10, 2), at DATE)")
            rows = [(n, n % 7 or None, f"Name {n % 100}", f"{n}.25", f"20{n % 30 + 10}-01-0{n % 9 + 1}") for n in range(COUNT)]
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s)", rows)
            cursor.execute("CREATE VIEW v AS SELECT a, COUNT(*) AS c FROM t GROUP BY a")
        yield found


def connect(server: WorkerServer, database: str | None = "d", user: str = "root", password: str = "") -> Any:
    return pymysql.connect(
        host="127.0.0.1", port=server.port, user=user, password=password, database=database, autocommit=True, charset="utf8mb4"
    )


def ask(connection: Any, procedure: str, *arguments: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f"CALL millrace.{procedure}({', '.join(['%s'] * len(arguments))})", arguments)
        return cursor.fetchall()


def read_part(connection: Any, query: str, part: str, epoch: int) -> pa.Table:
    (schema,), *batches = ask(connection, "scan", query, part, epoch)
    fields = pa.ipc.read_schema(pa.py_buffer(schema))
    found = [pa.ipc.read_record_batch(pa.py_buffer(each), fields) for (each,) in batches]
    for each in found:
        each.validate(full=True)
    return pa.Table.from_batches(found, fields)


def read(connection: Any, query: str, parts: int = 1, epoch: int | None = None) -> list[tuple[Any, ...]]:
    """The rows of all parts, one after the other."""
    if epoch is None:
        [(epoch, _)] = ask(connection, "keep_epoch", 60)
    names = [part for (part,) in ask(connection, "partition_scan", query, parts)]
    tables = [read_part(connection, query, part, epoch) for part in names]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def selected(connection: Any, query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT name, id FROM t",
        "SELECT id, a FROM t WHERE a > 3 AND id BETWEEN 100 AND 5000",
        "SELECT id FROM t WHERE a IS NULL OR NOT (a <> 2)",
        "SELECT id FROM t WHERE a IN (1, 2) AND id NOT IN (1, 8) AND 500 > id",
        "SELECT id, amount FROM t WHERE name = 'name 7' AND amount > 100",
        "SELECT id, at FROM t WHERE at >= '2025-01-01'",
        "SELECT id FROM t WHERE id = 17",
        "SELECT id FROM t WHERE id < 0",
        "SELECT a, COUNT(*), SUM(amount) FROM t GROUP BY a",
        "SELECT * FROM v",
        "SELECT x.id, y.name FROM t AS x JOIN t AS y ON y.id = x.id + 1 WHERE x.a = 3",
        "SELECT id + 1 AS next FROM t WHERE a = 5",
        "SELECT DISTINCT a FROM t",
        "SELECT id FROM t ORDER BY name, id LIMIT 10",
    ],
)
def test_a_scan_has_the_rows_of_the_select(server: WorkerServer, query: str) -> None:
    with connect(server) as connection:
        assert sorted(read(connection, query), key=repr) == sorted(selected(connection, query), key=repr)


@pytest.mark.parametrize("in_files", [False, True])
def test_parts_of_a_table_are_disjoint_and_complete(server: WorkerServer, in_files: bool) -> None:
    if in_files:
        server.call(lambda: server.worker.store._database._database.compact_range())
    with connect(server) as connection:
        names = [part for (part,) in ask(connection, "partition_scan", "SELECT id FROM t", 4)]
        assert len(names) == 4
        [(epoch, _)] = ask(connection, "keep_epoch", 60)
        parts = [read_part(connection, "SELECT id FROM t", part, epoch)["id"].to_pylist() for part in names]
        assert [each for part in parts for each in part] == list(range(COUNT))
        assert min(map(len, parts)) > COUNT // 16


def test_an_epoch_is_kept_while_others_write(server: WorkerServer) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE moving (id INT PRIMARY KEY, n INT)")
        cursor.execute("INSERT INTO moving VALUES (1, 1), (2, 2)")
        [(epoch, lease)] = ask(connection, "keep_epoch", 60)
        for number in range(1100):  # more than the shard remembers by itself
            cursor.execute(f"UPDATE moving SET n = {number} WHERE id = 1")
        cursor.execute("DELETE FROM moving WHERE id = 2")
        for query in ("SELECT id, n FROM moving", "SELECT id, SUM(n) FROM moving GROUP BY id"):
            assert sorted(read(connection, query, epoch=epoch)) == [(1, 1), (2, 2)]
        ask(connection, "forget_epoch", lease)
        with pytest.raises(pymysql.err.OperationalError, match="not kept any more"):
            read(connection, "SELECT id, n FROM moving", epoch=epoch)


def test_a_scan_goes_on_after_a_restart_if_nothing_was_written(server: WorkerServer) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO kept VALUES (1)")
        [(epoch, lease)] = ask(connection, "keep_epoch", 60)
        server.wait_for(server.stop_worker())
        server.wait_for(server.start_worker())
        assert ask(connection, "keep_epoch_again", lease, epoch, 60) == ((epoch, lease),)
        cursor.execute("INSERT INTO kept VALUES (2)")
        assert read(connection, "SELECT id FROM kept", epoch=epoch) == [(1,)]
        server.wait_for(server.stop_worker())
        server.wait_for(server.start_worker())
        with pytest.raises(pymysql.err.OperationalError, match="not kept any more"):
            ask(connection, "keep_epoch_again", lease, epoch, 60)


def test_a_part_of_a_table_that_has_changed_is_refused(server: WorkerServer) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE changing (id INT PRIMARY KEY, n INT)")
        [(epoch, _)] = ask(connection, "keep_epoch", 60)
        [(part,)] = ask(connection, "partition_scan", "SELECT id FROM changing", 1)
        cursor.execute("ALTER TABLE changing ADD COLUMN more INT")
        with pytest.raises(pymysql.err.OperationalError, match="definition has changed"):
            ask(connection, "scan", "SELECT id FROM changing", part, epoch)


def test_only_who_may_select_may_scan(server: WorkerServer) -> None:
    with connect(server) as root, root.cursor() as cursor:
        cursor.execute("CREATE TABLE hidden (id INT PRIMARY KEY, half INT)")
        cursor.execute("INSERT INTO hidden VALUES (1, 1)")
        cursor.execute("CREATE USER reader IDENTIFIED BY 'secret'")
        cursor.execute("GRANT SELECT ON d.t TO reader")
        [(epoch, _)] = ask(root, "keep_epoch", 60)
        [(part,)] = ask(root, "partition_scan", "SELECT id FROM hidden", 1)
        [(wide,)] = ask(root, "partition_scan", "SELECT id FROM t", 1)
    with connect(server, user="reader", password="secret") as connection:
        assert len(read(connection, "SELECT id FROM t")) == COUNT
        for procedure in (("describe_scan",), ("partition_scan", 1), ("scan", part, epoch)):
            for query in ("SELECT id FROM hidden", "SELECT t.id FROM t JOIN hidden ON hidden.id = t.id"):
                with pytest.raises(pymysql.err.OperationalError, match="denied"):
                    ask(connection, procedure[0], query, *procedure[1:])
        with connect(server) as root, root.cursor() as cursor:
            cursor.execute("GRANT SELECT (half) ON d.hidden TO reader")
        assert len(read(connection, "SELECT half FROM hidden")) == 1
        for query in ("SELECT id FROM hidden", "SELECT * FROM hidden", "SELECT half FROM hidden WHERE id = 1"):
            with pytest.raises(pymysql.err.OperationalError, match="denied"):
                ask(connection, "scan", query, part, epoch)
        everything = ":".join((wide.split(":")[0], "0", "00", "ff" * 8))  # whatever range is asked for, it is of this table
        assert read_part(connection, "SELECT id FROM t", everything, epoch).num_rows == COUNT
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        connect(server, user="reader", password="wrong")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("CALL millrace.nothing()", 1305),
        ("CALL millrace.keep_epoch('x')", 1210),
        ("CALL millrace.keep_epoch()", 1210),
        ("CALL millrace.forget_epoch('x')", 1210),
        ("CALL millrace.scan('SELECT id FROM t', 'x', 1)", 1412),
        ("CALL millrace.describe_scan('DELETE FROM t')", 1235),
        ("CALL other.scan()", 1235),
        ("CALL millrace.keep_epoch(1) more", 1064),
    ],
)
def test_what_is_wrong_is_said(server: WorkerServer, call: str, code: int) -> None:
    with connect(server) as connection, connection.cursor() as cursor, pytest.raises(pymysql.err.Error) as caught:
        cursor.execute(call)
    assert caught.value.args[0] == code


def test_a_client_that_leaves_ends_its_scan(server: WorkerServer) -> None:
    connection = connect(server)
    [(epoch, _)] = ask(connection, "keep_epoch", 60)
    [(part,)] = ask(connection, "partition_scan", "SELECT * FROM t", 1)
    cursor = connection.cursor(pymysql.cursors.SSCursor)
    cursor.execute("CALL millrace.scan(%s, %s, %s)", ("SELECT * FROM t", part, epoch))
    cursor.fetchone()
    cursor._result.unbuffered_active = False  # or it would read on
    connection._force_close()

    async def until_ended() -> None:
        while server.worker._reads._columns._scans:
            await asyncio.sleep(0)

    server.wait_for(until_ended())


def test_a_part_goes_on_where_it_was_after_a_restart(server: WorkerServer) -> None:
    address = ServerAddress("127.0.0.1", server.port, "root", "", "d")
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE wide (id INT PRIMARY KEY, text VARCHAR(1000))")
        cursor.execute("INSERT INTO wide SELECT id, REPEAT('x', 1000) FROM t")  # more than waits in sockets
        [part] = parts_of(connection, "SELECT id, text FROM wide WHERE id <> 5", 1, 60)
    batches = read_batches(address, part)
    found = next(batches)["id"].to_pylist()
    server.wait_for(server.stop_worker())
    server.wait_for(server.start_worker())
    for batch in batches:
        found += batch["id"].to_pylist()
    assert found == [n for n in range(COUNT) if n != 5]


def test_a_part_fails_if_its_epoch_is_lost(server: WorkerServer) -> None:
    address = ServerAddress("127.0.0.1", server.port, "root", "", "d")
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE lost (id INT PRIMARY KEY)")
        [part] = parts_of(connection, "SELECT * FROM wide", 1, 60)
        batches = read_batches(address, part)
        next(batches)
        cursor.execute("INSERT INTO lost VALUES (1)")
        server.wait_for(server.stop_worker())
        server.wait_for(server.start_worker())
        with pytest.raises(pymysql.err.OperationalError, match="not kept any more"):
            list(batches)
