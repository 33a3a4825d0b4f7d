"""Every statement of the Lobsters workload that reads, in both variants: the rows are MariaDB's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import pytest

from apps.lobsters.site import definitions
from tests.differential.comparison import DriverPeer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

USERS, STORIES, COMMENTS, VOTES, TAGS = 20, 40, 90, 400, 6
RUNS = 4
"""How often each statement is run, with other values."""


def text_of(name: str) -> str:
    return resources.files("apps.lobsters").joinpath(name).read_text()


def reads(variant: str) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for page in json.loads(text_of("queries.json")).values():
        for statement in page[variant]:
            if statement["kind"] == "read":
                found.setdefault(statement["sql"], statement)
    return list(found.values())


def rows(random: Random, variant: str) -> Iterator[str]:
    """INSERTs of a small site with everything that the pages look at."""

    def date() -> str:
        return f"'2024-01-{random.randint(1, 28):02} {random.randint(0, 23):02}:00:00'"

    def maybe(value: object, share: float = 0.5) -> object:
        return value if random.random() < share else "NULL"

    def flag(share: float = 0.1) -> int:
        return int(random.random() < share)

    baseline = variant == "baseline"
    for number in range(1, USERS + 1):
        karma = f", karma = {random.randint(0, 50)}" if baseline else ""
        yield f"INSERT INTO users SET id = {number}, username = 'user{number}', session_token = 's{number}'{karma}"
        yield f"INSERT INTO keystores VALUES ('user:{number}:stories_submitted', {random.randint(0, 9)})"
    for number in range(2, TAGS + 1):  # the schema has the first one, which is called test
        yield f"INSERT INTO tags SET id = {number}, tag = 'tag{number}', hotness_mod = {random.randint(-2, 2)}, inactive = {flag()}"
    for number in range(1, STORIES + 1):
        more = ""
        if baseline:
            more = f", upvotes = {random.randint(0, 9)}, downvotes = {random.randint(0, 3)}, hotness = {random.randint(-99, 99)}.5"
        yield (
            f"INSERT INTO stories SET id = {number}, user_id = {random.randint(1, USERS)}, title = 'Story {number}',"
            f" short_id = 's{number:05}', is_expired = {flag()}, merged_story_id = {maybe(random.randint(1, STORIES), 0.2)},"
            f" created_at = {date()}{more}"
        )
        for tag in random.sample(range(1, TAGS + 1), random.randint(0, 3)):
            yield f"INSERT INTO taggings SET story_id = {number}, tag_id = {tag}"
    for number in range(1, COMMENTS + 1):
        more = ""
        if baseline:
            more = f", upvotes = {random.randint(0, 9)}, downvotes = {random.randint(0, 3)}, confidence = 0.{random.randint(0, 999):03}"
        yield (
            f"INSERT INTO comments SET id = {number}, created_at = {date()}, short_id = 'c{number:05}',"
            f" story_id = {random.randint(1, STORIES)}, user_id = {random.randint(1, USERS)}, comment = 'text',"
            f" parent_comment_id = {maybe(random.randint(1, COMMENTS))}, is_deleted = {flag()}, is_moderated = {flag()}{more}"
        )
    for number in range(1, VOTES + 1):
        yield (
            f"INSERT INTO votes SET id = {number}, user_id = {random.randint(1, USERS)}, story_id = {random.randint(1, STORIES)},"
            f" comment_id = {maybe(random.randint(1, COMMENTS))}, vote = {flag(0.8)}"
        )
    for table in ("hidden_stories", "saved_stories", "read_ribbons", "tag_filters", "hats", "suggested_titles", "suggested_taggings"):
        pairs = random.sample([(u, s) for u in range(1, USERS + 1) for s in range(1, STORIES + 1)], 60)
        for user, story in pairs:
            yield _beside(table, user, story, date(), random)


def _beside(table: str, user: int, story: int, date: str, random: Random) -> str:
    stamps = f", created_at = {date}, updated_at = {date}"
    match table:
        case "read_ribbons":
            return f"INSERT INTO read_ribbons SET user_id = {user}, story_id = {story}, is_following = {random.randint(0, 1)}{stamps}"
        case "saved_stories":
            return f"INSERT INTO saved_stories SET user_id = {user}, story_id = {story}{stamps}"
        case "tag_filters":
            return f"INSERT INTO tag_filters SET user_id = {user}, tag_id = {story % TAGS + 1}{stamps}"
        case "hats":
            return f"INSERT INTO hats SET user_id = {user}, granted_by_user_id = 1, hat = 'h'"
        case "suggested_taggings":
            return f"INSERT INTO suggested_taggings SET user_id = {user}, story_id = {story}, tag_id = {story % TAGS + 1}"
        case _:
            return f"INSERT INTO {table} SET user_id = {user}, story_id = {story}"


def filled(random: Random, statement: dict[str, Any]) -> str:
    """The statement with values for its parameters."""
    sql: str = statement["sql"]
    for parameter in statement["params"]:
        is_list = parameter["type"].endswith("[]")
        values = [_value(random, parameter["name"], parameter["type"]) for _ in range(random.randint(1, 9) if is_list else 1)]
        sql = sql.replace("?*" if is_list else "?", ", ".join(values), 1)
    return sql


def _value(random: Random, name: str, kind: str) -> str:
    if kind.startswith("int"):
        highest = COMMENTS if "comment_id" in name else TAGS if "tag" in name else USERS if "user" in name or "author" in name else STORIES
        return str(random.randint(1, highest))
    number = random.randint(1, STORIES)
    if name == "username":
        return f"'user{number}'"
    if name == "key":
        return f"'user:{number}:stories_submitted'"
    return f"'{'c' if 'comment' in name or 'parent' in name else 's'}{number:05}'"


@pytest.mark.parametrize("variant", ["baseline", "natural"])
def test_lobsters_reads_like_mariadb(mariadb: MariaDB, tmp_path: Path, variant: str) -> None:
    random = Random(7)
    connection = mariadb.connect(mariadb.fresh_database())
    expected = DriverPeer(connection)
    # MariaDB does not know that a table's columns depend on its key.
    expected.run("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
    problems: list[str] = []
    with EmbeddedPeer(tmp_path) as found:
        for sql in (*definitions(variant), *rows(random, variant)):
            for peer in (expected, found):
                answer = peer.run(sql)
                assert not answer.error, (sql, answer)
        for statement in reads(variant):
            for _ in range(RUNS):
                sql = filled(random, statement)
                given = Generated(sql, ordered=" ORDER BY " in sql)
                difference = differences(given, expected.run(sql), found.run(sql))
                if difference:
                    problems.append(f"{sql}\n  expected {difference}")
    connection.close()
    assert not problems, f"{len(problems)} answers differ:\n" + "\n".join(problems)
