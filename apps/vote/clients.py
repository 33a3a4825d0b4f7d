"""The systems by name, and what the application wants of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from apps.vote.requests import Array

SYSTEMS = (
    "millrace client",
    "millrace MySQL",
    "MariaDB counter",
    "MariaDB counter, tree",
    "MariaDB natural",
    "MariaDB + memcached",
    "memcached",
    "Redis",
)
INSERT_STORIES = 2_000


class Client(Protocol):
    """A batch is answered as a whole. `read` gets different ids; those of `vote` may repeat."""

    def prepare(self, stories: int) -> None:
        """Tables, and the stories in them, without votes."""

    def read(self, ids: Array) -> int:
        """Fetch id, author, title, url and votes of these stories; how many there are."""

    def vote(self, ids: Array) -> None:
        """A vote for each of these."""

    def close(self) -> None: ...


def open_client(system: str, address: dict[str, Any], stories: int) -> Client:
    # A system's driver is only needed, and only installed, where the system is used.
    match system:
        case "millrace client":
            from apps.vote.millrace_client import MillraceClient

            return MillraceClient(address["data"])
        case "millrace MySQL":
            from apps.vote.sql_client import SqlClient

            return SqlClient(address["mysql_port"], "natural")
        case "MariaDB counter":
            from apps.vote.sql_client import SqlClient

            return SqlClient(address["mysql_port"], "counter", address["durable"])
        case "MariaDB counter, tree":
            from apps.vote.sql_client import SqlClient

            return SqlClient(address["mysql_port"], "counter", address["durable"], is_tree=True)
        case "MariaDB natural":
            from apps.vote.sql_client import SqlClient

            return SqlClient(address["mysql_port"], "natural", address["durable"])
        case "MariaDB + memcached":
            from apps.vote.cache_client import LookAsideClient
            from apps.vote.sql_client import SqlClient

            counter = SqlClient(address["mysql_port"], "counter", address["durable"], is_tree=True)
            return LookAsideClient(counter, address["memcached_port"], stories)
        case "memcached":
            from apps.vote.cache_client import MemcachedClient

            return MemcachedClient(address["memcached_port"], stories)
        case "Redis":
            from apps.vote.redis_client import RedisClient

            return RedisClient(address["redis_port"], stories)
    raise ValueError(system)


def schema(name: str) -> str:
    return (Path(__file__).parent / f"vote_{name}.sql").read_text()


def story_batches(stories: int) -> Iterator[list[tuple[int, int, str, str]]]:
    """The rows of all stories: id, author, title, url."""
    for first in range(1, stories + 1, INSERT_STORIES):
        ids = range(first, min(first + INSERT_STORIES, stories + 1))
        yield [(number, number % 1000, f"Article #{number}", f"/stories/{number}") for number in ids]
