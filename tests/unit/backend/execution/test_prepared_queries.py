"""Parameters in places where MySQL takes them: LIMIT of subqueries, frames of windows; and errors that only rows tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.client.statements import Statements
from dataflow.errors import Condition, InvalidStatement
from tests.differential.embedded import EmbeddedPeer

DEFINITIONS = (
    "CREATE TABLE s (id INT PRIMARY KEY)",
    "CREATE TABLE v (id INT PRIMARY KEY, story INT, weight INT, name VARCHAR(10), KEY (story))",
    "INSERT INTO s VALUES (1), (2), (3)",
    "INSERT INTO v VALUES (1, 1, 3, 'a'), (2, 1, 2, 'b'), (3, 1, 9, NULL), (4, 2, 1, 'a'), (5, 2, NULL, 'c'), (6, 1, 2, 'd')",
)


class Asking:
    def __init__(self, peer: EmbeddedPeer) -> None:
        self._peer = peer
        self._statements = Statements(peer.database, "d")

    def __call__(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return list(self._peer._loop.run_until_complete(self._statements.run(sql, parameters)).rows)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with EmbeddedPeer(tmp_path, shard_count=1) as peer:
        for sql in DEFINITIONS:
            assert not peer.run(sql).error
        yield Asking(peer)


@pytest.mark.parametrize(
    ("sql", "parameters", "expected"),
    [
        ("SELECT id, (SELECT weight FROM v WHERE story = s.id ORDER BY weight LIMIT ?) FROM s", (1,), [(1, 2), (2, None), (3, None)]),
        (
            "SELECT id, (SELECT weight FROM v WHERE story = s.id ORDER BY id LIMIT ? OFFSET ?) FROM s", (1, 1),
            [(1, 2), (2, None), (3, None)],
        ),
        (
            "SELECT id, (SELECT DISTINCT weight FROM v WHERE story <= s.id ORDER BY weight DESC LIMIT ? OFFSET ?) FROM s", (1, 1),
            [(1, 3), (2, 3), (3, 3)],
        ),
        ("SELECT s.id, l.id FROM s, LATERAL (SELECT id FROM v WHERE story = s.id ORDER BY id DESC LIMIT ?) l", (2,), [(1, 3), (1, 6), (2, 4), (2, 5)]),
        ("SELECT id FROM s WHERE EXISTS (SELECT 1 FROM v WHERE story = s.id LIMIT ?)", (1,), [(1,), (2,)]),
        ("SELECT id FROM s WHERE EXISTS (SELECT 1 FROM v WHERE story = s.id LIMIT ?)", (0,), []),
        ("SELECT id FROM (SELECT id FROM v UNION ALL SELECT id FROM s ORDER BY id LIMIT ?) x", (3,), [(1,), (1,), (2,)]),
        (
            "SELECT id, (SELECT weight FROM v WHERE story = s.id UNION ALL SELECT 7 FROM v WHERE id = s.id ORDER BY 1 DESC LIMIT ?) FROM s", (1,),
            [(1, 9), (2, 7), (3, 7)],
        ),
    ],
)  # fmt: skip
def test_limits_of_subqueries_may_be_parameters(ask: Asking, sql: str, parameters: tuple[Any, ...], expected: list[Any]) -> None:
    for _ in range(3):  # the second time from a view, if one is possible
        assert sorted(ask(sql, *parameters)) == expected


def test_frames_may_have_parameters(ask: Asking) -> None:
    sql = "SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN ? PRECEDING AND ? FOLLOWING) FROM v WHERE id < 5"
    assert ask(sql, 1, 0) == [(1, 1), (2, 3), (3, 5), (4, 7)]
    assert ask(sql, 0, 2) == [(1, 6), (2, 9), (3, 7), (4, 4)]
    for given in (-1, None, "1", 1.5):
        with pytest.raises(InvalidStatement) as raised:
            ask(sql, given, 0)
        assert raised.value.condition is Condition.WINDOW_FRAME


def test_names_of_members_may_be_null_unless_one_is(ask: Asking) -> None:
    sql = "SELECT story, JSON_OBJECTAGG(name, weight) FROM v WHERE story = ? GROUP BY story"
    for _ in range(3):
        assert ask(sql, 2) == [(2, '{"a": 1, "c": null}')]
    for query in (sql, "SELECT JSON_OBJECTAGG(name, weight) OVER () FROM v WHERE story = ?"):
        with pytest.raises(InvalidStatement) as raised:
            ask(query, 1)
        assert raised.value.condition is Condition.JSON_NULL_KEY
