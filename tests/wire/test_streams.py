"""Large results: read as they are sent, no faster than the client takes them, and let go with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.wire.raw import RawClient, ServerError
from tests.wire.server import ServerThread

ROWS = 30_000
BODY = "b" * 300


@pytest.fixture(scope="module")
def filled(millrace: ServerThread) -> Iterator[Any]:
    """run(sql) over a table of 30,000 rows with 300 bytes each."""
    connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="wire", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE streamed (id INT PRIMARY KEY, g INT, body VARCHAR(400), KEY (g))")
    for start in range(0, ROWS, 3_000):
        values = ", ".join(f"({number}, {number % 7}, '{BODY}')" for number in range(start, start + 3_000))
        cursor.execute(f"INSERT INTO streamed VALUES {values}")

    def run(sql: str) -> list[tuple[Any, ...]]:
        cursor.execute(sql)
        return list(cursor.fetchall())

    yield run
    cursor.execute("DROP TABLE streamed")
    connection.close()


def connection_of(millrace: ServerThread, client: RawClient) -> Any:
    """The server's side of a client."""
    number = int.from_bytes(client.greeting.partition(b"\0")[2][:4], "little")
    assert millrace.server is not None
    return millrace.server.connections[number]


def begin(client: RawClient, sql: str) -> None:
    """Ask for a result and read nothing of it but that it begins."""
    client.command(3, sql.encode())
    client.read_ok()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM streamed", list(range(ROWS))),
        ("SELECT id FROM streamed ORDER BY id DESC", list(range(ROWS))[::-1]),
        ("SELECT id FROM streamed LIMIT 20000 OFFSET 5", list(range(5, 20_005))),
        ("SELECT id FROM streamed LIMIT 5000, 1001", list(range(5_000, 6_001))),
        ("SELECT id FROM streamed WHERE id % 2 = 1", list(range(1, ROWS, 2))),
        ("SELECT DISTINCT id DIV 2 FROM streamed", list(range(ROWS // 2))),
    ],
)
def test_all_rows_arrive_in_order(filled: Any, sql: str, expected: list[int]) -> None:
    assert [row[0] for row in filled(sql)] == expected
    skipped = expected[0] if "LIMIT" in sql else 0
    assert filled("SELECT FOUND_ROWS()") == [(skipped + len(expected),)]


def test_rows_of_an_index_and_of_ones_own_transaction_arrive(filled: Any) -> None:
    filled("BEGIN")
    filled("UPDATE streamed SET body = 'mine' WHERE id = 29997")
    filled("DELETE FROM streamed WHERE id = 3")
    found = dict(filled("SELECT id, body FROM streamed"))
    assert len(found) == ROWS - 1 and 3 not in found and found[29_997] == "mine" and found[29_996] == BODY
    assert len(filled("SELECT id FROM streamed WHERE g < 2")) == sum(number % 7 < 2 for number in range(ROWS)) - (3 % 7 < 2)
    filled("ROLLBACK")


def test_sql_select_limit_ends_a_stream(filled: Any) -> None:
    filled("SET sql_select_limit = 12345")
    assert len(filled("SELECT * FROM streamed")) == 12_345
    filled("SET sql_select_limit = DEFAULT")


def test_a_result_is_read_no_faster_than_it_is_taken(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as slow:
        begin(slow, "SELECT * FROM wire.streamed")
        connection = connection_of(millrace, slow)
        for _ in range(20):
            assert filled("SELECT COUNT(*) FROM streamed WHERE id < 10") == [(10,)]
            assert millrace.call(lambda: connection.stream.unsent_bytes) < 4 << 20
        for _ in range(3):
            slow.read()  # what the columns are
        assert slow.read()[0] == 0xFE
        assert len(slow.read_rows()) == ROWS


def test_others_may_change_the_table_meanwhile(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as slow:
        begin(slow, "SELECT id, g, body FROM wire.streamed")
        filled("UPDATE streamed SET body = 'later' WHERE id >= 20000")
        for _ in range(3):
            slow.read()
        assert slow.read()[0] == 0xFE
        rows = slow.read_rows()
        assert len(rows) == ROWS and all(BODY.encode() in row for row in rows)
        filled(f"UPDATE streamed SET body = '{BODY}' WHERE id >= 20000")


def test_a_computed_result_waits_outside_of_memory(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as slow:
        begin(slow, "SELECT a.id, a.body, b.g FROM wire.streamed a JOIN wire.streamed b ON a.id = b.id ORDER BY a.body, a.id")
        for _ in range(3):
            slow.read()
        assert slow.read()[0] == 0xFE
        rows = slow.read_rows()
        assert [int(row[1 : 1 + row[0]]) for row in rows] == list(range(ROWS))


def test_kill_query_ends_a_stream_and_nothing_else(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as slow:
        begin(slow, "SELECT * FROM wire.streamed")
        connection = connection_of(millrace, slow)
        filled(f"KILL QUERY {connection.id}")
        for _ in range(3):
            slow.read()
        assert slow.read()[0] == 0xFE
        with pytest.raises(ServerError) as error:
            slow.read_rows()
        assert (error.value.code, error.value.sqlstate) == (1317, "70100")
        assert slow.query("SELECT 5") == [b"\x015"]


def test_kill_ends_a_connection_that_does_not_read(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as slow:
        begin(slow, "SELECT * FROM wire.streamed")
        connection = connection_of(millrace, slow)
        gone = threading.Event()
        millrace.call(lambda: connection._task.add_done_callback(lambda _: gone.set()))
        filled(f"KILL {connection.id}")
        assert gone.wait(10)
        for _ in range(4):
            slow.read()
        with pytest.raises((EOFError, ConnectionError)):
            slow.read_rows()


def test_cursors_fetch_from_a_stream(millrace: ServerThread, filled: Any) -> None:
    with RawClient(millrace.port) as client:
        client.command(0x16, b"SELECT id FROM wire.streamed")
        answer = client.read_ok()
        statement = answer[1:5]
        client.read()
        client.read()
        client.command(0x17, statement + b"\x01" + b"\x01\0\0\0")
        client.read_ok()
        client.read()
        client.read()
        numbers: list[int] = []
        while True:
            client.command(0x1C, statement + (7_001).to_bytes(4, "little"))
            rows = client.read_rows()
            numbers += [int.from_bytes(row[2:6], "little") for row in rows]
            if len(rows) < 7_001:
                break
        assert numbers == list(range(ROWS))
        client.command(0x17, statement + b"\x01" + b"\x01\0\0\0")
        client.read_ok()
        client.read()
        client.read()
        client.command(0x1A, statement)  # reset, with the cursor still open
        assert client.read_ok()[0] == 0
