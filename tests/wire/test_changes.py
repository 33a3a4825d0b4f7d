"""CALL millrace.changes and its family: what has changed in tables and views, by epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from tests.wire.worker_server import WorkerServer, worker_server


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("changes")) as found:
        connection = connect(found, None)
        run(connection, "CREATE DATABASE d")
        run(connection, "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, name VARCHAR(40), amount DECIMAL(10, 2), KEY (a))")
        run(connection, "CREATE VIEW d.v AS SELECT a, COUNT(*) AS c, SUM(amount) AS total FROM d.t GROUP BY a")
        run(connection, "CREATE VIEW d.w AS SELECT x.a, y.name FROM d.t AS x JOIN d.t AS y ON x.a = y.a")
        yield found


def connect(server: WorkerServer, database: str | None = "d", user: str = "root") -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, database=database, autocommit=True)


def run(connection: Any, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments or None)
        return list(cursor.fetchall())


def changes(connection: Any, name: str, since: int) -> list[tuple[Any, ...]]:
    """In no order within an epoch."""
    return sorted(run(connection, "CALL millrace.changes(%s, %s)", name, since), key=lambda row: (row[0], row[1], repr(row)))


def keep(connection: Any, name: str, *limits: int) -> int:
    [(_, latest)] = run(connection, f"CALL millrace.keep_changes({', '.join(['%s'] * (1 + len(limits)))})", name, *limits)
    return int(latest)


def restart(server: WorkerServer) -> None:
    server.wait_for(server.stop_worker())
    server.wait_for(server.start_worker())


def summed(start: list[tuple[Any, ...]], found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    rows = Counter(start)
    for _, weight, *row in found:
        rows[tuple(row)] += weight
        assert rows[tuple(row)] >= 0
    return +rows


def error(connection: Any, sql: str, *arguments: object) -> int:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run(connection, sql, *arguments)
    return int(raised.value.args[0])


def test_a_tables_changes_are_those_of_each_epoch_and_the_same_when_read_again(server: WorkerServer) -> None:
    connection = connect(server)
    run(connection, "INSERT INTO t VALUES (1, 5, 'Öl', 1.50)")
    since = keep(connection, "t")
    assert changes(connection, "d.t", since) == []
    run(connection, "INSERT INTO t VALUES (2, 5, NULL, 2.25), (3, 6, 'c', NULL)")
    run(connection, "UPDATE t SET a = 7 WHERE id = 1")
    run(connection, "DELETE FROM t WHERE id = 3")
    found = changes(connection, "t", since)
    first, second, third = sorted({row[0] for row in found})
    amount = run(connection, "SELECT amount FROM t WHERE id = 1")[0][0]
    assert [row[:5] for row in found] == [
        (first, 1, 2, 5, None),
        (first, 1, 3, 6, "c"),
        (second, -1, 1, 5, "Öl"),
        (second, 1, 1, 7, "Öl"),
        (third, -1, 3, 6, "c"),
    ]
    assert found[2][5] == amount
    assert changes(connection, "t", first) == found[2:]
    restart(server)
    assert changes(connection, "t", since) == found
    run(connection, "INSERT INTO t VALUES (9, 9, 'later', 0)")
    assert [row[1:5] for row in changes(connection, "t", third)] == [(1, 9, 9, "later")]


def test_a_views_changes_add_up_to_the_view_whatever_becomes_of_the_worker(server: WorkerServer) -> None:
    connection = connect(server)
    run(connection, "INSERT INTO t VALUES (1, 5, 'x', 1.50), (2, NULL, 'y', 2)")
    start = {name: run(connection, f"SELECT * FROM {name}") for name in ("v", "w")}
    since = {name: keep(connection, name) for name in ("v", "w")}
    read: dict[str, list[tuple[Any, ...]]] = {"v": [], "w": []}
    for step in range(12):
        run(connection, "INSERT INTO t VALUES (%s, %s, %s, %s)", 10 + step, step % 4, f"n{step % 3}", step)
        run(connection, "UPDATE t SET amount = amount + 1 WHERE a = %s", step % 3)
        if step % 3 == 2:
            run(connection, "DELETE FROM t WHERE id = %s", 9 + step)
        if step % 4 == 3:
            restart(server)
        if step == 6:
            run(connection, "CREATE INDEX more ON t (name)")
        for name, before in read.items():
            at = before[-1][0] if before else since[name]
            before += changes(connection, name, at)
            assert changes(connection, name, since[name]) == before
            assert summed(start[name], before) == Counter(run(connection, f"SELECT * FROM {name}"))
    [only] = run(connection, "CALL millrace.changes_position('v', %s, 1)", since["v"])
    assert only[2] == read["v"][0][0] and only[1] >= read["v"][-1][0]


def test_who_is_too_slow_is_told_and_what_is_not_kept_is_refused(server: WorkerServer) -> None:
    connection = connect(server)
    assert error(connection, "CALL millrace.changes('t', 0)") == 1381
    assert error(connection, "CALL millrace.changes('nothing', 0)") == 1146
    assert error(connection, "CALL millrace.keep_changes('t', 0)") == 1210
    since = keep(connection, "t", 3600, 2_000)
    for number in range(100):
        run(connection, "INSERT INTO t VALUES (%s, 1, %s, 1)", number, "long" * 9)
    server.call(server.worker.enforce_limit)
    [(oldest, latest, _)] = run(connection, "CALL millrace.changes_position('t', %s, 0)", since)
    while oldest == since:
        [(oldest, latest, _)] = run(connection, "CALL millrace.changes_position('t', %s, 0)", since)
    assert error(connection, "CALL millrace.changes('t', %s)", since) == 1236
    assert {row[0] for row in changes(connection, "t", oldest)} <= set(range(oldest + 1, latest + 1))
    [listed] = run(connection, "SELECT name, kind, oldest, latest, bytes, bytes_max FROM millrace.feeds")
    assert listed[:4] == ("d.t", "table", oldest, latest) and listed[4] <= listed[5] == 2_000
    run(connection, "CALL millrace.forget_changes('t')")
    assert error(connection, "CALL millrace.changes('t', %s)", latest) == 1381
    keep(connection, "t")
    run(connection, "TRUNCATE TABLE t")
    assert error(connection, "CALL millrace.changes('t', %s)", latest) == 1381


def test_changes_are_for_who_may_read_the_table(server: WorkerServer) -> None:
    root = connect(server)
    run(root, "CREATE USER reader, nobody")
    run(root, "GRANT SELECT ON d.t TO reader")
    run(root, "GRANT SELECT ON millrace.* TO nobody")
    reader, nobody = connect(server, None, "reader"), connect(server, None, "nobody")
    assert error(reader, "CALL millrace.keep_changes('d.t')") == 1142
    since = keep(root, "t")
    run(root, "INSERT INTO t VALUES (1, 1, 'a', 1)")
    assert len(changes(reader, "d.t", since)) == 1
    assert error(nobody, "CALL millrace.changes('d.t', 0)") == 1142
    assert error(nobody, "CALL millrace.changes_position('d.t', 0, 0)") == 1142
    assert run(nobody, "SELECT name FROM millrace.feeds") == []


def test_changes_come_as_record_batches_up_to_an_epoch(server: WorkerServer) -> None:
    connection = connect(server)
    since = keep(connection, "t")
    run(connection, "INSERT INTO t VALUES (1, 1, 'a', 1)")
    [(_, middle, _)] = run(connection, "CALL millrace.changes_position('t', 0, 0)")
    run(connection, "INSERT INTO t VALUES (2, 1, 'b', 2)")
    (schema,), *batches = run(connection, "CALL millrace.scan_changes('t', %s, %s)", since, middle)
    fields = pa.ipc.read_schema(pa.py_buffer(schema))
    rows = [row for (each,) in batches for row in pa.ipc.read_record_batch(pa.py_buffer(each), fields).to_pylist()]
    assert [(row["millrace_epoch"], row["millrace_weight"], row["id"], row["name"]) for row in rows] == [(middle, 1, 1, "a")]
    [(described,)] = run(connection, "CALL millrace.describe_changes('t')")
    assert pa.ipc.read_schema(pa.py_buffer(described)) == fields


def test_changes_are_waited_for(server: WorkerServer) -> None:
    connection, writer = connect(server), connect(server)
    since = keep(connection, "v")
    cursor = connection.cursor()
    cursor._query = None
    connection._execute_command(3, f"CALL millrace.changes('v', {since}, 30)".encode())
    run(writer, "INSERT INTO t VALUES (1, 4, 'a', 1)")
    connection._read_query_result()
    assert [row[1:4] for row in connection._result.rows] == [(1, 4, 1)]
