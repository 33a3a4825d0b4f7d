"""The application on Redis: a story's text and its votes are two values, as on memcached alone."""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any

import hiredis

from apps.vote.clients import story_batches
from apps.vote.requests import Array

RECEIVE_BYTES = 1 << 20


class RedisClient:
    def __init__(self, port: int, stories: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()
        numbers = range(stories + 1)
        self._texts = [b"s%d" % number for number in numbers]
        self._counts = [b"v%d" % number for number in numbers]

    def prepare(self, stories: int) -> None:
        for rows in story_batches(stories):
            values: list[Any] = []
            for number, author, title, url in rows:
                values += [b"s%d" % number, f"{author}|{title}|{url}", b"v%d" % number, 0]
            self._run(_pack("MSET", *values), 1)

    def read(self, ids: Array) -> int:
        wanted = ids.tolist()
        names = [self._texts[each] for each in wanted] + [self._counts[each] for each in wanted]
        found: list[bytes | None] = self._run(_pack("MGET", *names), 1)[0]
        return (len(found) - found.count(None)) // 2

    def vote(self, ids: Array) -> None:
        times = Counter(ids.tolist())
        commands = [_pack("INCRBY", self._counts[story], count) for story, count in times.items()]
        self._run(b"".join(commands), len(commands))

    def _run(self, commands: bytes, answers: int) -> list[Any]:
        self._socket.sendall(commands)
        found: list[Any] = []
        while True:
            answer = self._reader.gets()
            if answer is False:
                self._reader.feed(self._socket.recv(RECEIVE_BYTES))
                continue
            if isinstance(answer, hiredis.ReplyError):
                raise answer
            found.append(answer)
            if len(found) == answers:
                return found

    def close(self) -> None:
        self._socket.close()


def _pack(*command: Any) -> bytes:
    packed: bytes = hiredis.pack_command(command)
    return packed
