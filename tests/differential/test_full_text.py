"""MATCH … AGAINST finds the rows that InnoDB finds, and puts them in its order."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.differential.comparison import DriverPeer, Peer
from tests.differential.embedded import EmbeddedPeer
from tests.mariadb import MariaDB

WORDS = ["apple", "Apple", "apples", "banana", "Banane", "cherry", "the", "of", "it", "don't", "naïve", "naive", "data", "database", "data_base", "2024", "42", "x1y", "é", "été"]
NATURAL = ["apple", "banana cherry", "the", "of it", "data", "naïve apple", "2024", "42", "don't", "", "nothing", "été", "apple apple"]
BOOLEAN = [
    "apple", "+apple +banana", "+apple -banana", "apple banana", "+apple banana", "data*", "+data* -database", '"apple banana"',
    '"banana cherry" apple', "+(banana cherry) +apple", "-apple", "+apple -(banana cherry)", "app*", '+"data database"', "+the +apple",
    ">apple <banana", "+nothing apple", "",
]  # fmt: skip


@pytest.fixture(scope="module")
def peers(mariadb: MariaDB, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer]]:
    random = Random(5)
    rows = []
    for number in range(1, 61):
        title, body = (" ".join(random.choice(WORDS) for _ in range(random.randrange(length))) for length in (4, 9))
        shown = "NULL" if not title else "'" + title.replace("'", "''") + "'"
        rows.append(f"({number}, {shown}, '" + body.replace("'", "''") + "')")
    statements = [
        "CREATE TABLE pages (id INT PRIMARY KEY, title VARCHAR(100), body TEXT, FULLTEXT KEY whole (title, body), FULLTEXT KEY (body))"
        " DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        "INSERT INTO pages VALUES " + ", ".join(rows),
        "ANALYZE TABLE pages",
    ]
    with mariadb.connect(mariadb.fresh_database()) as connection, EmbeddedPeer(tmp_path_factory.mktemp("engine")) as found:
        expected = DriverPeer(connection)
        for sql in statements:
            assert not expected.run(sql).error
            if not sql.startswith("ANALYZE"):
                assert not found.run(sql).error, found.run(sql)
        yield expected, found


def quoted(query: str) -> str:
    return "'" + query.replace("'", "''") + "'"


@pytest.mark.parametrize(
    ("query", "mode"), [(each, "") for each in NATURAL] + [(each, " IN BOOLEAN MODE") for each in BOOLEAN]
)
def test_a_search_finds_the_rows_that_innodb_finds(peers: tuple[Peer, Peer], query: str, mode: str) -> None:
    expected, found = peers
    for columns in ("title, body", "pages.body"):
        sql = f"SELECT id FROM pages WHERE MATCH({columns}) AGAINST ({quoted(query)}{mode}) ORDER BY id"
        theirs, ours = expected.run(sql), found.run(sql)
        assert ours.error == theirs.error and ours.rows == theirs.rows, sql
        scored = f"SELECT id FROM pages WHERE MATCH({columns}) AGAINST ({quoted(query)}{mode}) > 0 ORDER BY id"
        assert found.run(scored).rows == expected.run(scored).rows, scored


@pytest.mark.parametrize("query", ["apple", "banana cherry", "data naive 2024"])
def test_scores_are_innodbs(peers: tuple[Peer, Peer], query: str) -> None:
    expected, found = peers
    sql = f"SELECT id, MATCH(title, body) AGAINST ({quoted(query)}) AS score FROM pages ORDER BY score DESC, id LIMIT 20"
    theirs, ours = expected.run(sql).rows, found.run(sql).rows
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert [float(row[1]) for row in ours] == pytest.approx([float(row[1]) for row in theirs], rel=1e-5)


def test_a_search_needs_an_index_of_its_columns(peers: tuple[Peer, Peer]) -> None:
    for peer in peers:
        assert peer.run("SELECT id FROM pages WHERE MATCH(title) AGAINST ('apple')").error == 1191
