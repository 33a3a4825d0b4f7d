"""The application on a server that speaks MySQL, through mysqlclient.

`natural` counts the votes where they are asked for, by a view of the database. `counter` has
the count in the story's row and adds to it with each vote, as in the paper's baseline: its tables
are in memory and reads don't wait for writers, unless what is acknowledged has to be durable. In memory
an index is a hash table unless it `is_tree`: all votes of a story are one chain of it then, and each takes longer than the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import MySQLdb

from apps.vote.clients import schema, story_batches
from apps.vote.requests import Array

DATABASE = "vote"


class SqlClient:
    def __init__(self, port: int, variant: str, durable: bool = True, is_tree: bool = False) -> None:
        self._connection = MySQLdb.connect(host="127.0.0.1", port=port, user="root", autocommit=True)
        self._cursor = self._connection.cursor()
        self._counts = variant == "counter"
        self._in_memory = self._counts and not durable
        self._schema = schema("baseline" if self._counts else "natural")
        if is_tree:
            self._schema = self._schema.replace("(story_id)", "(story_id) USING BTREE")
        table = "stories" if self._counts else "StoriesWithVC"
        self._select = f"SELECT id, author, title, url, vcount FROM {DATABASE}_{variant}.{table} WHERE id IN (%s)"
        self._database = f"{DATABASE}_{variant}"
        if self._in_memory:
            self._cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")

    def prepare(self, stories: int) -> None:
        execute = self._cursor.execute
        execute(f"CREATE DATABASE IF NOT EXISTS {self._database}")
        execute(f"USE {self._database}")
        definition = "\n".join(line for line in self._schema.splitlines() if not line.startswith("--"))
        if not self._in_memory:
            definition = definition.replace(" USING HASH", "").replace("ENGINE=MEMORY", "")
        for statement in definition.split(";"):
            if statement.strip():
                execute(statement)
        for rows in story_batches(stories):
            values = ", ".join(f"({number}, {author}, '{title}', '{url}')" for number, author, title, url in rows)
            execute(f"INSERT INTO stories (id, author, title, url) VALUES {values}")

    def read(self, ids: Array) -> int:
        return len(self.rows(ids))

    def rows(self, ids: Array) -> tuple[tuple[Any, ...], ...]:
        self._cursor.execute(self._select % ", ".join(map(str, ids.tolist())))
        found: tuple[tuple[Any, ...], ...] = self._cursor.fetchall()
        return found

    def vote(self, ids: Array) -> None:
        voted = ids.tolist()
        values = ", ".join(f"(0, {each})" for each in voted)
        self._cursor.execute(f"INSERT INTO {self._database}.votes (user, story_id) VALUES {values}")
        if not self._counts:
            return
        by_times = defaultdict(list)
        for story, times in Counter(voted).items():
            by_times[times].append(str(story))
        for times, stories in by_times.items():
            update = f"UPDATE {self._database}.stories SET vcount = vcount + {times} WHERE id IN "
            self._cursor.execute(f"{update} ({', '.join(stories)})")

    def close(self) -> None:
        self._connection.close()
