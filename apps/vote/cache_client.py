"""The application on memcached: alone, and beside a database that is asked on a miss.

Alone, a story is two values: its text, and its votes, which are counted up in place; nothing is
durable and no vote is kept, so it does less than the others. Beside the database a story
is one value, deleted when it is voted for. Batches are single commands or pipelines over a plain socket.
"""

from __future__ import annotations

import socket
from collections import Counter

import numpy as np

from apps.vote.clients import story_batches
from apps.vote.requests import Array
from apps.vote.sql_client import SqlClient

RECEIVE_BYTES = 1 << 20


class Memcached:
    """The few commands that are needed, many at once."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, keys: list[bytes]) -> dict[bytes, bytes]:
        self._socket.sendall(b"get " + b" ".join(keys) + b"\r\n")
        lines = self._receive(b"END\r\n").split(b"\r\n")
        # VALUE <key> <flags> <length>, then the value, and so on; END at last
        return {line.split(b" ", 2)[1]: value for line, value in zip(lines[0:-2:2], lines[1:-2:2])}

    def set(self, values: dict[bytes, bytes]) -> None:
        self._pipeline(b"".join([b"set %s 0 0 %d noreply\r\n%s\r\n" % (key, len(each), each) for key, each in values.items()]))

    def delete(self, keys: list[bytes]) -> None:
        self._pipeline(b"".join([b"delete %s noreply\r\n" % key for key in keys]))

    def add(self, times: dict[bytes, int]) -> None:
        self._pipeline(b"".join([b"incr %s %d noreply\r\n" % each for each in times.items()]))

    def _pipeline(self, commands: bytes) -> None:
        """Commands without answers; done when the one that follows them is answered."""
        self._socket.sendall(commands + b"mn\r\n")
        self._receive(b"MN\r\n")

    def _receive(self, end: bytes) -> bytes:
        received = self._socket.recv(RECEIVE_BYTES)
        if received.endswith(end):
            return received
        parts = [received]
        while not (received := b"".join(parts[-2:])).endswith(end):
            assert parts[-1], "memcached has closed the connection"
            parts.append(self._socket.recv(RECEIVE_BYTES))
        return b"".join(parts)

    def close(self) -> None:
        self._socket.close()


class MemcachedClient:
    def __init__(self, port: int, stories: int) -> None:
        self._cache = Memcached(port)
        numbers = range(stories + 1)
        self._texts = [b"s%d" % number for number in numbers]
        self._counts = [b"v%d" % number for number in numbers]

    def prepare(self, stories: int) -> None:
        for rows in story_batches(stories):
            self._cache.set({b"s%d" % row[0]: f"{row[1]}|{row[2]}|{row[3]}".encode() for row in rows})
            self._cache.set({b"v%d" % row[0]: b"0" for row in rows})

    def read(self, ids: Array) -> int:
        wanted = ids.tolist()
        names = [self._texts[each] for each in wanted] + [self._counts[each] for each in wanted]
        return len(self._cache.get(names)) // 2

    def vote(self, ids: Array) -> None:
        counts = self._counts
        self._cache.add({counts[story]: times for story, times in Counter(ids.tolist()).items()})

    def close(self) -> None:
        self._cache.close()


class LookAsideClient:
    def __init__(self, database: SqlClient, port: int, stories: int) -> None:
        self._database = database
        self._cache = Memcached(port)
        self._names = [b"r%d" % number for number in range(stories + 1)]

    def prepare(self, stories: int) -> None:
        self._database.prepare(stories)
        self._cache.delete(self._names)

    def read(self, ids: Array) -> int:
        names = self._names
        wanted = ids.tolist()
        found = self._cache.get([names[each] for each in wanted])
        if len(found) == len(wanted):
            return len(found)
        missing = [each for each in wanted if names[each] not in found]
        rows = self._database.rows(np.array(missing))
        self._cache.set({names[row[0]]: b"|".join([str(each).encode() for each in row[1:]]) for row in rows})
        return len(found) + len(rows)

    def vote(self, ids: Array) -> None:
        self._database.vote(ids)
        self._cache.delete([self._names[each] for each in set(ids.tolist())])

    def close(self) -> None:
        self._cache.close()
        self._database.close()
