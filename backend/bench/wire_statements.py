"""The server's CPU for statements that are no hits: reads of keys that nobody asked for before, and writes of one row.

Part of `millrace bench wire`. Each statement is prepared; a process of its own keeps one outstanding on each of
a few connections, sends packets that are ready and reads no more of the answers than where they end. No key is read
twice. Writes are durable. Those `_below_view` are to a table of which a vote count is kept, for keys that are filled.
`insert_rows` is INSERT of 1,000 rows as text by one connection; its figures, and those of the same with AUTO_INCREMENT, are for a row.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from backend.bench import Advance
from backend.bench.mariadb import connect
from backend.bench.servers import MeasuredServer

DATABASE = "statements"
ROWS = 100_000
SMALL_ROWS = 1_000
BATCH_ROWS = 1_000
VOTES_PER_STORY = 2
WARM_ROWS = 1_000
"""So many keys at the beginning are for what happens before anything is measured."""
CONNECTIONS = 8
LONG = 3
EOF = b"\xfe\0\0\2\0"

TABLES = (
    "CREATE TABLE stories (id INT NOT NULL PRIMARY KEY, title VARCHAR(100) NOT NULL, score INT NOT NULL)",
    "CREATE TABLE small (id INT NOT NULL PRIMARY KEY, title VARCHAR(100) NOT NULL, score INT NOT NULL)",
    "CREATE TABLE imported (id INT NOT NULL PRIMARY KEY, title VARCHAR(100) NOT NULL, score INT NOT NULL)",
    *(
        f"CREATE TABLE {name} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, story_id INT NOT NULL, user_id INT NOT NULL, KEY (story_id))"
        for name in ("votes", "plain_votes")
    ),
)
COUNT = (
    "SELECT s.id, s.title, COUNT(v.id) AS vcount FROM stories s LEFT JOIN votes v ON v.story_id = s.id "
    "WHERE s.id = ? GROUP BY s.id, s.title"
)


@dataclass(frozen=True, slots=True)
class StatementKind:
    sql: str
    first: int = WARM_ROWS
    """The first key that is measured; those before it come before."""
    row: str = ""
    """What each of `BATCH_ROWS` rows is where `sql` goes on with them, as text."""

    def text(self, key: int) -> bytes:
        return (self.sql + ", ".join([self.row.format(each) for each in range(key * BATCH_ROWS, (key + 1) * BATCH_ROWS)])).encode()


KINDS = {
    "point_cold": StatementKind("SELECT id, title, score FROM stories WHERE id = ?"),
    "point_absent": StatementKind("SELECT id, title, score FROM small WHERE id = ?", SMALL_ROWS + WARM_ROWS),
    "view_cold": StatementKind(COUNT),
    "insert": StatementKind("INSERT INTO plain_votes (story_id, user_id) VALUES (?, 1)"),
    "update": StatementKind("UPDATE plain_votes SET user_id = user_id + 1 WHERE id = ?"),
    "insert_below_view": StatementKind("INSERT INTO votes (story_id, user_id) VALUES (?, 1)"),
    "update_below_view": StatementKind("UPDATE votes SET user_id = user_id + 1 WHERE id = ?"),
    "insert_rows": StatementKind("INSERT INTO imported VALUES ", 1, "({0}, 'row number {0}', {0})"),
    "insert_numbered_rows": StatementKind("INSERT INTO plain_votes (story_id, user_id) VALUES ", 1, "({0}, 1)"),
}
"""In the order in which they are measured: the keys of the view are filled by then."""


def measured(server: MeasuredServer, seconds: float, advance: Advance) -> dict[str, dict[str, float]]:
    """µs of server CPU for each statement (`cpu`), and statements/s (`rate`)."""
    advance("loading", 0.0)
    _load(server.port)
    figures: dict[str, dict[str, float]] = {}
    for number, kind in enumerate(KINDS):
        advance(kind, (number + 0.5) / len(KINDS))
        command = [sys.executable, "-m", "backend.bench.wire_statements", str(server.port), kind, str(seconds)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
            assert load.stdin is not None and load.stdout is not None
            load.stdout.readline()
            before = server.cpu_s()
            print(file=load.stdin, flush=True)
            count, taken = json.loads(load.stdout.readline())
            rows = count * (BATCH_ROWS if KINDS[kind].row else 1)
            figures[kind] = {"cpu": (server.cpu_s() - before) / rows * 1e6, "rate": rows / taken}
    return figures


def _load(port: int) -> None:
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        for table in TABLES:
            cursor.execute(table)
        for table, rows in (("stories", ROWS), ("small", SMALL_ROWS)):
            for first in range(0, rows, BATCH_ROWS):
                stories = ", ".join([f"({each}, 'story number {each}', 1)" for each in range(first, first + BATCH_ROWS)])
                cursor.execute(f"INSERT INTO {table} VALUES {stories}")
        for table in ("votes", "plain_votes"):
            for first in range(0, ROWS * VOTES_PER_STORY, BATCH_ROWS):
                votes = ", ".join([f"({each // VOTES_PER_STORY}, 1)" for each in range(first, first + BATCH_ROWS)])
                cursor.execute(f"INSERT INTO {table} (story_id, user_id) VALUES {votes}")


# --- the process that asks


class StatementClient:
    """A connection that sends a statement and tells when its answer is whole; PyMySQL only logs in."""

    def __init__(self, port: int, kind: StatementKind) -> None:
        self._connection: Any = connect(port, DATABASE)
        self.socket: socket.socket = self._connection._sock
        self._text = kind.text if kind.row else None
        self._is_read = kind.sql.startswith("SELECT")
        self._answer = b""
        if kind.row:
            return
        self.socket.sendall(packet(b"\x16" + kind.sql.encode()))
        data = b""
        while data.count(EOF) < 1 + self._is_read:  # the ends of parameters and columns
            data += self.socket.recv(1 << 16)
        self._head = b"\x17" + data[5:9] + b"\0\1\0\0\0" + b"\0\1" + bytes((LONG, 0))

    def send(self, key: int) -> None:
        asked = self._head + key.to_bytes(4, "little") if self._text is None else b"\x03" + self._text(key)
        self.socket.sendall(packet(asked))

    def is_answered(self) -> bool:
        """Take what has come."""
        data = self._answer = self._answer + self.socket.recv(1 << 16)
        if data[4] == 0xFF:
            raise RuntimeError(data.decode("latin-1"))
        done = data.endswith(EOF) and data.count(b"\x05\0\0") >= 2 if self._is_read else len(data) == data[0] + 4
        if done:
            self._answer = b""
        return done


def packet(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "little") + payload


def ask(clients: list[StatementClient], keys: Iterator[int], seconds: float) -> tuple[int, float]:
    """Keep one statement outstanding on each connection; how many there were, and how long they took."""
    count, started = 0, time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send(next(keys))
        outstanding = len(clients)
        while outstanding:
            is_over = time.perf_counter() - started > seconds
            for ready, _ in selector.select():
                if not ready.data.is_answered():
                    continue
                count += 1
                key = None if is_over else next(keys, None)
                if key is None:
                    outstanding -= 1
                else:
                    ready.data.send(key)
    return count, time.perf_counter() - started


def load(port: int, name: str, seconds: float) -> None:
    kind = KINDS[name]
    clients = [StatementClient(port, kind) for _ in range(1 if kind.row else CONNECTIONS)]
    ask(clients, iter(range(0 if kind.row else kind.first - WARM_ROWS + 1, kind.first)), 1e9)
    print("ready", flush=True)
    sys.stdin.readline()
    last = 1 << 31 if name == "point_absent" else ROWS
    print(json.dumps(ask(clients, iter(range(kind.first, last)), seconds)), flush=True)


if __name__ == "__main__":
    load(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
