"""What sessions had leaves memory with them, at once: nobody waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pymysql
import pytest

from mysql_adapter.sessions.prepared import Prepared
from mysql_adapter.sessions.session import Session
from tests.wire.server import ServerThread

SESSIONS = 12
VARIABLE_BYTES = 4_000_000


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live() -> int:
    """Sessions and prepared statements that somebody still refers to."""
    return sum(type(each) in (Session, Prepared) for each in gc.get_objects())


def leave(connection: Any) -> None:
    connection.close()


def vanish(connection: Any) -> None:
    connection._force_close()


def be_killed(connection: Any) -> None:
    with pytest.raises(pymysql.err.Error):
        connection.cursor().execute(f"KILL {connection.thread_id()}")
        connection.ping(reconnect=False)


def vanish_while_sending(connection: Any) -> None:
    connection._sock.sendall((VARIABLE_BYTES).to_bytes(3, "little") + b"\0\3" + b"x" * (VARIABLE_BYTES // 2))
    connection._force_close()


@pytest.mark.parametrize("end", [leave, vanish, be_killed, vanish_while_sending])
def test_nothing_of_a_session_is_left_after_its_end(
    millrace: ServerThread, without_collector: None, end: Callable[[Any], None]
) -> None:
    opened: set[int] = set()

    def open_and_end() -> None:
        connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="wire", autocommit=True)
        opened.add(connection.thread_id())
        cursor = connection.cursor()
        cursor.execute(f"SET @large = REPEAT('x', {VARIABLE_BYTES})")
        cursor.execute("CREATE TEMPORARY TABLE IF NOT EXISTS passing (id INT)")
        cursor.execute("PREPARE kept FROM 'SELECT ?'")
        cursor.execute("SELECT LENGTH(@large)")
        assert cursor.fetchone() == (VARIABLE_BYTES,)
        end(connection)

    def until_ended() -> None:
        assert millrace.server is not None
        while opened & millrace.server.connections.keys():
            pass
        millrace.call(lambda: None)  # what the last one does when it is no longer listed

    open_and_end()
    until_ended()
    before, bytes_before = live(), psutil.Process().memory_info().rss
    for _ in range(SESSIONS):
        open_and_end()
    until_ended()
    assert live() <= before
    assert psutil.Process().memory_info().rss - bytes_before < SESSIONS * VARIABLE_BYTES / 4
