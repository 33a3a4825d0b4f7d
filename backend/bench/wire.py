"""`millrace bench wire`: reads over the MySQL protocol, and what they cost the server.

The vote application's read (a story and the count of its votes) and a SELECT by primary key, of one row,
prepared and as text with the key written into it, and of the rows of a long list; each on millrace and on MariaDB. A
process of its own keeps requests outstanding on a few connections; it sends packets that are
ready and reads no more of the answers than where they end, so that both servers get as
much as they can do. The server's processor time is that of its whole process tree.
Statements that are no hits follow (`backend.bench.wire_statements`).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from backend.bench import Advance, Measurement, wire_statements
from backend.bench.cluster import scratch
from backend.bench.mariadb import connect, mariadb
from backend.bench.options import option
from backend.bench.servers import MeasuredServer, millrace
from backend.bench.wire_statements import packet

DATABASE = "wire"
STORIES = """CREATE TABLE stories (id INT NOT NULL PRIMARY KEY, author INT NOT NULL,
    title VARCHAR(255) NOT NULL, url VARCHAR(255) NOT NULL)"""
VOTES = "CREATE TABLE votes (user INT NOT NULL, story_id INT NOT NULL, KEY (story_id))"
QUERIES = {
    "view": "SELECT s.id, s.author, s.title, s.url, COUNT(v.user) AS vcount FROM stories s "
    "LEFT JOIN votes v ON v.story_id = s.id WHERE s.id = {} GROUP BY s.id, s.author, s.title, s.url",
    "point": "SELECT id, author, title, url FROM stories WHERE id = {}",
}
KINDS = [f"{protocol}_{query}" for query in QUERIES for protocol in ("prepared", "text")]
KINDS += [f"text_{query}_list" for query in QUERIES]
LIST_KEYS = 500
LIST_STEP = 7919
LISTS = 200
"""So many lists, of keys that are `LIST_STEP` apart."""
BATCH_ROWS = 1000
VOTES_PER_STORY = 5
ROUNDS_BEFORE = 5
"""So often each key is read before anything is measured."""
EOF = 0xFE
LONG = 3
"""The protocol's type number of a 32-bit integer."""


@dataclass(frozen=True, slots=True)
class Options:
    stories: int = option(10_000, "stories, all of them read")
    seconds: float = option(3.0, "how long each figure is measured")
    connections: int = option(16, "with one request outstanding each")
    only_statements: bool = option(False, "no hits, only what is not one")


Figures = dict[str, dict[str, float]]


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    with scratch() as folder:
        advance("starting millrace", 0.0)
        with millrace(folder / "millrace") as server:
            ours = _measured(server, options, lambda what, done: advance(f"millrace, {what}", 0.1 + 0.4 * done))
        (folder / "mariadb").mkdir()
        advance("starting MariaDB", 0.5)
        theirs: Figures = {}
        with mariadb(folder / "mariadb") as port:
            if port is not None:
                server = MeasuredServer(port, int((folder / "mariadb" / "m.pid").read_text()))
                theirs = _measured(server, options, lambda what, done: advance(f"MariaDB, {what}", 0.55 + 0.4 * done))
    for name, figures in ours.items():
        protocol = name.partition("_")[0]
        point = f"{protocol}_point" + ("_list" if name.endswith("_list") else "")
        others = (name,) if name in wire_statements.KINDS else dict.fromkeys((point, name))
        peers = {f"MariaDB, {each}": theirs[each] for each in others if each in theirs}
        each_of = " a row" if name.endswith(("_list", "_rows")) else ""
        for measure, unit in (("cpu", f"µs of server CPU{each_of}"), ("rate", "rows/s" if each_of else "requests/s")):
            yield Measurement(
                "wire", f"{name}_{measure}", figures[measure], unit, {peer: each[measure] for peer, each in peers.items()}
            )


def _measured(server: MeasuredServer, options: Options, advance: Advance) -> Figures:
    statements = wire_statements.measured(server, options.seconds, lambda what, done: advance(what, 0.5 * done))
    if options.only_statements:
        return statements
    return _measured_hits(server, options, lambda what, done: advance(what, 0.5 + 0.5 * done)) | statements


def _measured_hits(server: MeasuredServer, options: Options, advance: Advance) -> Figures:
    advance("loading", 0.0)
    _load(server.port, options.stories)
    figures: Figures = {}
    for number, kind in enumerate(KINDS):
        advance(kind, (number + 0.5) / len(KINDS))
        command = [sys.executable, "-m", "backend.bench.wire", str(server.port), kind, json.dumps(asdict(options))]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
            assert load.stdin is not None and load.stdout is not None
            load.stdout.readline()
            before = server.cpu_s()
            print(file=load.stdin, flush=True)
            count, seconds = json.loads(load.stdout.readline())
            rows = count * (LIST_KEYS if kind.endswith("_list") else 1)
            figures[kind] = {"cpu": (server.cpu_s() - before) / rows * 1e6, "rate": rows / seconds}
    return figures


def _load(port: int, stories: int) -> None:
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        cursor.execute(STORIES)
        cursor.execute(VOTES)
        for first in range(0, stories, BATCH_ROWS):
            ids = range(first, min(first + BATCH_ROWS, stories))
            rows = ", ".join(f"({each}, {each % 97}, 'story number {each}', 'https://example.org/{each}')" for each in ids)
            cursor.execute(f"INSERT INTO stories VALUES {rows}")
            for user in range(VOTES_PER_STORY):
                cursor.execute("INSERT INTO votes VALUES " + ", ".join(f"({user}, {each})" for each in ids))


# --- the process that asks


class ReadClient:
    """A connection that makes the packets of a read; PyMySQL only logs in."""

    def __init__(self, port: int, kind: str) -> None:
        self._connection: Any = connect(port, DATABASE)
        self.socket: socket.socket = self._connection._sock
        protocol, query, *is_list = kind.split("_")
        self._sql = QUERIES[query].replace("= {}", "IN ({})") if is_list else QUERIES[query]
        self._key_count = LIST_KEYS if is_list else 1
        self._statement = self._prepare() if protocol == "prepared" else None

    def _prepare(self) -> bytes:
        self.socket.sendall(packet(b"\x16" + self._sql.format("?").encode()))
        data = b""
        while data.count(b"\xfe\0\0\2\0") < 2:  # the ends of parameters and columns
            data += self.socket.recv(1 << 16)
        return data[5:9]

    def request(self, key: int, keys: Sequence[int]) -> bytes:
        """For one key, or a list of `keys` that begins with it."""
        if self._statement is None:
            wanted = [keys[(key + LIST_STEP * step) % len(keys)] for step in range(self._key_count)]
            return packet(b"\x03" + self._sql.format(", ".join(map(str, wanted))).encode())
        head = b"\x17" + self._statement + b"\0\1\0\0\0"
        return packet(head + b"\0\1" + bytes((LONG, 0)) + key.to_bytes(4, "little"))


def ask(clients: Sequence[ReadClient], rounds: Iterator[list[bytes]], end: bytes, seconds: float = 1e9) -> tuple[int, float]:
    """Send a round of requests, one on each connection, and await the answers; how many, and how long it took."""
    sockets = [client.socket for client in clients]
    count, started = 0, time.perf_counter()
    for requests in rounds:
        for connected, request in zip(sockets, requests):
            connected.sendall(request)
        for connected in sockets:
            while not connected.recv(1 << 16).endswith(end):
                pass
        count += len(sockets)
        if time.perf_counter() - started > seconds:
            break
    return count, time.perf_counter() - started


def _end_of_answer(client: ReadClient, request: bytes) -> bytes:
    """The last packet of an answer: an EOF with a number that no other packet of it has."""
    client.socket.sendall(request)
    data = b""
    while data.count(b"\x05\0\0") < 2 or data[-5] != EOF:
        data += client.socket.recv(1 << 16)
    return data[-9:]


def load(port: int, kind: str, options: Options) -> None:
    clients = [ReadClient(port, kind) for _ in range(options.connections)]
    keys = range(options.stories)
    asked = keys[:: max(1, len(keys) // LISTS)] if kind.endswith("_list") else keys
    requests = [[client.request(key, keys) for client in clients] for key in asked]
    end = _end_of_answer(clients[0], requests[0][0])
    for first in range(ROUNDS_BEFORE):
        ask(clients, iter(requests[: len(clients) * 4] if first == 0 else requests), end)
    print("ready", flush=True)
    sys.stdin.readline()
    order = np.random.default_rng(1).integers(0, len(requests), (1 << 16, len(clients))).tolist()

    def rounds() -> Iterator[list[bytes]]:
        while True:
            for places in order:
                yield [requests[place][number] for number, place in enumerate(places)]

    print(json.dumps(ask(clients, rounds(), end, options.seconds)), flush=True)


if __name__ == "__main__":
    load(int(sys.argv[1]), sys.argv[2], Options(**json.loads(sys.argv[3])))
