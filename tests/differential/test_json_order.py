"""Documents in an order, as the least and the greatest of groups, and distinct: as MySQL documents it, evaluated and from views.

MariaDB cannot tell: documents are texts there. null < numbers < strings < objects < arrays < false < true, strings by their bytes,
arrays by their first cells that differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.differential.embedded import EmbeddedPeer

DOCUMENTS: tuple[Any, ...] = (
    None, 0, -3, 2, 2.5, 10, 1e20, "", "a", "B", "b", "10", "ä", {"a": 1}, [], [1], [1, 2], [2], ["a"], [None, [3]], False, True,
)  # fmt: skip
ROUNDS = 12
QUERIES = (
    "SELECT doc FROM t ORDER BY doc",
    "SELECT doc FROM t ORDER BY doc DESC LIMIT 3",
    "SELECT MIN(doc), MAX(doc), COUNT(DISTINCT doc) FROM t",
    "SELECT g, MIN(doc), MAX(doc) FROM t GROUP BY g ORDER BY g",
    "SELECT DISTINCT doc FROM t ORDER BY doc",
    "SELECT doc, COUNT(*) FROM t GROUP BY doc ORDER BY doc",
)


def rank(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return 5, value
        case None:
            return (0,)
        case int() | float():
            return 1, value
        case str():
            return 2, value.encode()
        case dict():
            return 3, json.dumps(value)
        case _:
            return 4, [rank(each) for each in value]


def expected(rows: list[tuple[int, int, Any]]) -> list[list[tuple[Any, ...]]]:
    """What the queries have to answer."""
    found = sorted((doc for _, _, doc in rows), key=rank)
    groups = {g: sorted((doc for _, each, doc in rows if each == g), key=rank) for g in sorted({g for _, g, _ in rows})}
    unique = [doc for place, doc in enumerate(found) if not place or rank(found[place - 1]) != rank(doc)]
    ends = [(found[0], found[-1], len(unique))] if found else [(None, None, 0)]
    return [
        [(each,) for each in found],
        [(each,) for each in found[::-1][:3]],
        ends,
        [(g, docs[0], docs[-1]) for g, docs in groups.items()],
        [(each,) for each in unique],
        [(each, sum(1 for doc in found if rank(doc) == rank(each))) for each in unique],
    ]


@pytest.mark.parametrize("seed", range(2))
def test_documents_are_ordered_as_mysql_says_from_views_too(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows: dict[int, tuple[int, int, Any]] = {}
    with EmbeddedPeer(tmp_path) as peer:
        peer.run("CREATE TABLE t (id INT PRIMARY KEY, g INT, doc JSON)")
        for _ in range(ROUNDS):
            for _ in range(random.randint(1, 4)):
                key = random.randint(1, 15)
                if random.random() < 0.3 and len(rows) > 1:
                    rows.pop(key, None)
                    peer.run(f"DELETE FROM t WHERE id = {key}")
                else:
                    rows[key] = key, random.randint(1, 3), random.choice(DOCUMENTS)
                    text = json.dumps(rows[key][2], ensure_ascii=False)
                    assert not peer.run(f"REPLACE INTO t VALUES ({key}, {rows[key][1]}, '{text}')").error
            for sql, wanted in zip(QUERIES, expected(list(rows.values()))):
                answer = peer.run(sql)
                assert answer.rows is not None, (sql, answer)
                read = [tuple(None if cell is None else json.loads(cell) for cell in row) for row in answer.rows]
                assert [list(map(rank, row)) for row in read] == [list(map(rank, row)) for row in wanted], f"seed {seed}: {sql}"
