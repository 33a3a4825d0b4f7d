"""`millrace verify` finds a key whose rows are not those of the base tables, and nothing else, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.wire.auditing import verify, writing
from tests.wire.worker_server import WorkerServer, worker_server

STORIES = 200


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    with worker_server(tmp_path_factory.mktemp("verify")) as found:
        with connect(found, None) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("USE d")
            cursor.execute("CREATE TABLE votes (id INT PRIMARY KEY AUTO_INCREMENT, story INT NOT NULL, user VARCHAR(20) NOT NULL, weight DOUBLE, KEY (story), KEY (user))")
            cursor.executemany("INSERT INTO votes (story, user, weight) VALUES (%s, %s, %s)", [(n % STORIES, f"User {n % 7}", n / 7) for n in range(2000)])
            cursor.execute("CREATE VIEW counts AS SELECT story, COUNT(*) AS votes, SUM(weight) AS weight FROM votes GROUP BY story")
            for _ in range(4):
                for story in range(STORIES + 5):
                    cursor.execute(f"SELECT * FROM counts WHERE story = {story}")
                    cursor.fetchall()
                for user in ("User 1", "user 2", "nobody"):
                    cursor.execute(f"SELECT user, COUNT(*), MAX(story) FROM votes WHERE user = '{user}' GROUP BY user")
                    cursor.fetchall()
        yield found


def connect(server: WorkerServer, database: str | None = "d", **account: str) -> Any:
    account = {"user": "root", "password": ""} | account
    return pymysql.connect(host="127.0.0.1", port=server.port, database=database, autocommit=True, charset="utf8mb4", **account)


def test_views_that_are_right_are_found_right_while_others_write(server: WorkerServer) -> None:
    def statements(number: int) -> tuple[str, ...]:
        return (
            f"INSERT INTO votes (story, user, weight) VALUES ({number % STORIES}, 'User {number % 9}', 0.1)",
            f"DELETE FROM votes WHERE id = {number}",
        )

    with writing(lambda: connect(server), statements):
        for _ in range(3):
            code, output = verify(server.port)
            assert code == 0, output
            assert output.count("all right") >= 2
            assert f"d.counts: {STORIES + 5} keys" in output


def test_a_damaged_key_is_found_and_nothing_else(server: WorkerServer) -> None:
    def damage() -> None:
        [hosted] = [each for each in server.worker.views.views.values() if each.known.names]
        state = hosted.view.arrangement.index[17]
        story, _, weight = state[-1]
        state[-1] = (story, 999, weight)

    server.call(damage)
    code, output = verify(server.port, "counts")
    assert code == 1, output
    assert "1 differ" in output and "key 17\n" in output
    assert "maintained ((17, 999, " in output and "evaluated  ((17, 10, " in output and "plan" in output
    code, output = verify(server.port, "--sample=20", "counts")
    assert f"20 of {STORIES + 5} keys" in output


def test_who_may_not_read_everything_may_not_verify(server: WorkerServer) -> None:
    with connect(server) as root, root.cursor() as cursor:
        cursor.execute("CREATE USER reader IDENTIFIED BY 'known'")
        cursor.execute("GRANT SELECT ON d.* TO reader")
        cursor.execute("SELECT name FROM millrace.views")
        [name, *_] = cursor.fetchone()
    with connect(server, user="reader", password="known") as connection, connection.cursor() as cursor, pytest.raises(pymysql.err.OperationalError, match="denied"):
        cursor.execute("CALL millrace.verify_view(%s, 0)", (name,))


def test_a_view_that_is_not_maintained_is_named(server: WorkerServer) -> None:
    assert verify(server.port, "missing") == (1, "Error: view missing is not maintained\n")
