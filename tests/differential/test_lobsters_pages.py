"""One random sequence of Lobsters requests, text and prepared, in both variants: MariaDB's rows after each.

What the baseline keeps in columns and the natural variant derives in views is the same all
the time. The statements of the vote benchmark follow the same way.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import mysql.connector
import pymysql
import pytest

from apps.lobsters.connection import SQL_MODE
from apps.lobsters.pages import Result, Statement, pages, run_page
from apps.lobsters.site import definitions
from backend.execution.embedded import open_embedded
from backend.execution.local_store import LocalStore
from controller.sql.text.lexer import split_statements
from tests.differential.lobsters_pages import Site
from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

DERIVED = {
    "stories": (
        "SELECT id, upvotes, downvotes, comments_count, CAST(-hotness AS SIGNED) FROM stories ORDER BY id",
        "SELECT id, upvotes, downvotes, comments_count, CAST(hotness AS SIGNED) FROM story_summary ORDER BY id",
    ),
    "comments": (
        "SELECT id, upvotes, downvotes FROM comments ORDER BY id",
        "SELECT id, upvotes, downvotes FROM comment_with_votes ORDER BY id",
    ),
    "karma": (
        "SELECT u.id, u.karma FROM users AS u ORDER BY u.id",
        "SELECT u.id, COALESCE(CAST(k.karma AS SIGNED), 0) FROM users AS u LEFT JOIN user_karma AS k ON k.user_id = u.id ORDER BY u.id",
    ),
    "counters": (
        "SELECT u.id, COALESCE(c.value, 0), COALESCE(s.value, 0) FROM users AS u"
        " LEFT JOIN keystores AS c ON c.`key` = CONCAT('user:', u.id, ':comments_posted')"
        " LEFT JOIN keystores AS s ON s.`key` = CONCAT('user:', u.id, ':stories_submitted') ORDER BY u.id",
        "SELECT id, comments, stories FROM user_stats ORDER BY id",
    ),
    "front page": (
        "SELECT id FROM stories WHERE merged_story_id IS NULL AND is_expired = 0 AND upvotes >= downvotes ORDER BY hotness, id LIMIT 51",
        "SELECT id FROM frontpage_ids",
    ),
    "notifications": (
        "SELECT user_id, COUNT(*) FROM unread_replies GROUP BY user_id ORDER BY user_id",
        "SELECT user_id, notifications FROM notifications ORDER BY user_id",
    ),
}


class Connection:
    """One database of one server, through the text and the prepared protocol."""

    def __init__(self, stack: ExitStack, port: int, database: str) -> None:
        address: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": "root", "database": database, "autocommit": True}
        self._text = stack.enter_context(pymysql.connect(**address))
        self._prepared = mysql.connector.connect(**address, use_pure=True)
        # else the driver waits 40 ms for each execution
        self._prepared._socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stack.callback(self._prepared.close)
        self._statements: dict[str, Any] = {}
        for sql in (SQL_MODE,):
            self.text(sql, [])
            cursor = self._prepared.cursor()
            cursor.execute(sql)
            cursor.close()

    def text(self, sql: str, values: list[Any]) -> Result:
        pieces = sql.split("?")
        literals = [self._text.escape(each, self._text.encoders) for each in values]
        whole = "".join(piece + literal for piece, literal in zip(pieces, [*literals, ""])) if values else sql
        with self._text.cursor() as cursor:
            cursor.execute(whole)
            return _result(cursor)

    def prepared(self, sql: str, values: list[Any]) -> Result:
        cursor = self._statements.get(sql)
        if cursor is None:
            cursor = self._statements[sql] = self._prepared.cursor(prepared=True)
        cursor.execute(sql, tuple(values))
        return _result(cursor)


def _result(cursor: Any) -> Result:
    if not cursor.description:
        return Result(insert_id=cursor.lastrowid or 0)
    return Result({each[0]: number for number, each in enumerate(cursor.description)}, cursor.fetchall())


class Pair:
    """MariaDB and millrace, given the same statements; what is different fails."""

    def __init__(self, random: Random, expected: Connection, found: Connection) -> None:
        self._random = random
        self._expected, self._found = expected, found
        self.statements: set[str] = set()

    def execute(self, sql: str, values: list[Any], is_read: bool) -> Result:
        self.statements.add(sql)
        ways = ["text", "prepared"] if is_read else [self._random.choice(["text", "prepared"])]
        for way in ways:
            theirs: Result = getattr(self._expected, way)(sql, values)
            ours: Result = getattr(self._found, way)(sql, values)
            assert self._same(sql, theirs, ours), f"{way}: {sql} {values}\n  expected {theirs}\n  found {ours}"
        return theirs

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.execute(sql, [], True).rows]

    def run(self, statement: Statement, values: list[Any]) -> Result:
        return self.execute(*statement.spread(values), statement.is_read)

    def _same(self, sql: str, theirs: Result, ours: Result) -> bool:
        if theirs.insert_id != ours.insert_id:
            return False
        if " ORDER BY " in sql:
            return list(theirs.rows) == list(ours.rows)
        return sorted(map(repr, theirs.rows)) == sorted(map(repr, ours.rows))


@dataclass
class Servers:
    mariadb: MariaDB
    millrace: ServerThread
    store: LocalStore

    def view_count(self) -> int:
        found: int = self.millrace.call(lambda: len(self.store.hosted_views()))
        return found


@pytest.fixture
def servers(mariadb: MariaDB, tmp_path: Path) -> Iterator[Servers]:
    stores: list[LocalStore] = []

    async def open_database() -> Any:
        database = await open_embedded(tmp_path, shard_count=1)
        assert isinstance(database.store, LocalStore)
        stores.append(database.store)
        return database

    with ServerThread(open_database) as server:
        yield Servers(mariadb, server, stores[0])


def connected(servers: Servers, stack: ExitStack, random: Random, setup: list[str]) -> Pair:
    theirs, ours = servers.mariadb, servers.millrace
    name = theirs.fresh_database()
    with pymysql.connect(host="127.0.0.1", port=ours.port, user="root") as connection:
        connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    expected, found = Connection(stack, theirs.port, name), Connection(stack, ours.port, name)
    for sql in setup:
        for each in (expected, found):
            each.text(sql, [])
    return Pair(random, expected, found)


def _follow(servers: Servers, seed: int, count: int) -> None:
    random = Random(seed)
    known = {variant: pages(variant) for variant in ("baseline", "natural")}
    with ExitStack() as stack:
        pairs = {variant: connected(servers, stack, random, list(definitions(variant))) for variant in ("baseline", "natural")}
        for pair in pairs.values():  # else no page would ask for what the filters hide
            for user in (1, 2, 3):
                filters = "INSERT INTO tag_filters (created_at, updated_at, user_id, tag_id) VALUES (?, ?, ?, ?)"
                pair.execute(filters, ["2024-01-01", "2024-01-01", user, 1], False)
        for number, (page, request) in enumerate(Site(random).requests(count)):
            for variant, pair in pairs.items():
                run_page(known[variant][page], request, pair.run)
            for name, (kept, derived) in DERIVED.items():
                one, other = pairs["baseline"].rows(kept), pairs["natural"].rows(derived)
                assert one == other, f"seed {seed}, request {number} {page}: {name} differ"
        for variant, pair in pairs.items():
            sent = {" ".join(sql.split("(?")[0].split()) for sql in pair.statements}
            asked = {" ".join("?".join(each.pieces).split("(?")[0].split()) for page in known[variant].values() for each in page}
            assert asked <= sent, asked - sent
        assert servers.view_count() > 25


def test_lobsters_requests_answer_like_mariadb_in_both_variants(servers: Servers) -> None:
    _follow(servers, seed=3, count=60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_1000_lobsters_requests_answer_like_mariadb_in_both_variants(servers: Servers) -> None:
    _follow(servers, seed=4, count=1000)


def _vote_statements(name: str, variant: str) -> list[str]:
    found = json.loads(resources.files("apps.vote").joinpath("queries_vote.json").read_text())
    return [each["sql"] for each in found[name][variant]]


def test_vote_statements_answer_like_mariadb_in_both_variants(servers: Servers) -> None:
    random = Random(5)
    stories, folder = 20, resources.files("apps.vote")
    with ExitStack() as stack:
        pairs = {}
        for variant in ("baseline", "natural"):
            files = ["vote_baseline.sql"] if variant == "baseline" else ["vote_natural.sql", "vote_migration.sql"]
            setup = [sql for name in files for sql in split_statements(folder.joinpath(name).read_text())]
            pairs[variant] = connected(servers, stack, random, setup)
            for number in range(stories):
                pairs[variant].execute("INSERT INTO stories (id, title) VALUES (?, ?)", [number, f"story {number}"], False)
        baseline, natural = pairs["baseline"], pairs["natural"]
        for _ in range(80):
            story, ids = random.randrange(stories), random.sample(range(stories + 2), random.randint(1, 6))
            for variant, pair in pairs.items():
                insert, *bump = _vote_statements("vote_write", variant)
                pair.execute(insert, [0, story], False)
                for sql in bump:
                    pair.execute(sql.replace("?*", "?"), [1, story], False)
            places = ", ".join("?" * len(ids))
            found = [
                pair.execute(sql.replace("?*", places) + " ORDER BY id", ids, True).rows
                for variant, pair in pairs.items()
                for sql in _vote_statements("vote_read", variant)
            ]
            assert found[0] == found[1]
            (insert,) = _vote_statements("rating_write", "natural")
            natural.execute(insert, [random.randint(1, 9), story, random.randint(1, 5)], False)
            (sql,) = _vote_statements("rating_read", "natural")
            natural.execute(sql.replace("?*", places), ids, True)
            other = natural.execute(sql.replace("StoriesWithRatings", "StoriesWithRatingsB").replace("?*", places), ids, True)
            assert other == natural.execute(sql.replace("?*", places), ids, True)
        assert baseline.statements and natural.statements
