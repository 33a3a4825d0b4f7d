"""EXPLAIN, and what the `millrace` schema shows of maintained views."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from backend.execution.embedded import open_embedded
from tests.wire.server import ServerThread

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("explain")

    async def open_database() -> Any:
        return await open_embedded(folder)

    with ServerThread(open_database) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)

        def execute(sql: str) -> Any:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())

        execute("CREATE DATABASE d")
        execute("USE d")
        execute("CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(50), author INT, KEY (author))")
        execute("CREATE TABLE votes (id INT PRIMARY KEY, story INT, KEY (story))")
        execute("INSERT INTO stories VALUES (1, 'a', 1), (2, 'b', 1)")
        execute("INSERT INTO votes VALUES (1, 1), (2, 1), (3, 2)")
        yield execute
        connection.close()


VOTES = (
    "SELECT s.id, s.title, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id "
    "WHERE s.id = {} GROUP BY s.id, s.title"
)


def test_the_plain_form_has_a_row_for_each_table(run: Run) -> None:
    (row,) = run("EXPLAIN SELECT * FROM stories WHERE id = 1")
    assert row[:8] == (1, "SIMPLE", "stories", None, "const", "PRIMARY", "PRIMARY", None)
    assert run("EXPLAIN SELECT * FROM stories WHERE author = 1")[0][4:7] == ("ref", "author", "author")
    assert run("EXPLAIN SELECT * FROM stories WHERE id > 1 ORDER BY title")[0][4] == "range"
    assert run("EXPLAIN SELECT * FROM stories WHERE title = 'x'")[0][4:7] == ("ALL", None, None)
    assert run("EXPLAIN SELECT 1")[0][-1] == "No tables used"
    joined = run("DESCRIBE " + VOTES.format(1))
    assert sorted(row[2] for row in joined) == ["stories", "votes"]
    assert all("Using maintained view (partial by " in row[-1] for row in joined)


def test_the_json_form_is_mysqls_and_says_how_it_is_answered(run: Run) -> None:
    block = json.loads(run("EXPLAIN FORMAT=JSON SELECT * FROM stories WHERE id = 1")[0][0])["query_block"]
    assert block["select_id"] == 1
    assert block["table"] == {
        "table_name": "stories", "access_type": "const", "possible_keys": ["PRIMARY"], "key": "PRIMARY", "ref": ["const"],
    }  # fmt: skip
    block = json.loads(run("EXPLAIN FORMAT=JSON " + VOTES.format(1))[0][0])["query_block"]
    assert {each["table"]["table_name"] for each in block["nested_loop"]} == {"stories", "votes"}
    assert block["millrace"]["maintained_view"] is True
    assert "Maintained view (partial by " in block["millrace"]["plan"]["operation"]
    assert json.loads(run("EXPLAIN FORMAT=JSON SELECT 1")[0][0])["query_block"]["message"] == "No tables used"


def test_analyze_runs_the_query_and_says_how_long_it_took(run: Run) -> None:
    [(tree,)] = run("EXPLAIN ANALYZE SELECT * FROM stories")
    assert re.match(r"-> .* \(actual time=[\d.e-]+\.\.[\d.e-]+ rows=2 loops=1\)\n", tree)


def test_the_tree_says_what_is_kept_and_why(run: Run) -> None:
    ((tree,),) = run("EXPLAIN FORMAT=TREE " + VOTES.format(1))
    assert "Maintained view (partial by stories.id), looked up by stories.id" in tree
    assert "Aggregate: count(*)" in tree and "Inner join: " in tree and "-> Table votes" in tree
    assert "the view is made when the query comes again" in tree
    for _ in range(3):
        assert run(VOTES.format(1)) == [(1, "a", 2)]
    ((tree,),) = run("EXPLAIN FORMAT=TREE " + VOTES.format(2))
    assert " 1 keys, 1 rows, " in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT author, COUNT(*) FROM stories GROUP BY author HAVING COUNT(*) > 1")
    assert "full: it is read without a key" in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT s.id FROM stories s JOIN votes v ON v.story = s.id WHERE RAND() < 2")
    assert "Evaluated on each read: its result changes while the tables do not" in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT * FROM stories WHERE id = 1")
    assert "Maintained view (partial by stories.id), looked up by stories.id" in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT * FROM stories WHERE author = 1 AND title = 'a'")
    assert "Filter: " in tree and "Maintained view (partial by stories.author), looked up by stories.author" in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT * FROM stories WHERE title BETWEEN 'a' AND 'b'")
    assert "Maintained view (full: it is read without a key), ordered by stories.title" in tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT * FROM stories WHERE title = 'a'")
    assert "Maintained view (full: the table has no index on these columns), looked up by stories.title" in tree
    for reason, sql in (
        ("its rows are locked", "SELECT id FROM stories WHERE id = 1 FOR UPDATE"),
        ("its rows are locked", VOTES.format(1) + " FOR SHARE"),
        ("it is a part of another query", "SELECT * FROM (SELECT id, RANK() OVER (ORDER BY id) AS r FROM stories) x WHERE r = 1"),
        ("it is a part of another query", "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r"),
        ("parts of it depend on the results of others", "SELECT id FROM stories INTERSECT ALL SELECT story FROM votes"),
        ("it depends on the moment it is asked", "SELECT COUNT(*) FROM votes WHERE story > NOW()"),
    ):
        ((tree,),) = run("EXPLAIN FORMAT=TREE " + sql)
        assert f"Evaluated on each read: {reason}\n" in tree, tree
    ((tree,),) = run("EXPLAIN FORMAT=TREE SELECT * FROM stories WHERE id > 1")
    assert "Evaluated on each read: " in tree and "using PRIMARY" in tree


def test_the_tree_says_by_what_a_view_is_ordered_for_ranges(run: Run) -> None:
    page = "SELECT id, title FROM stories WHERE author = 1 AND id < {} ORDER BY id DESC LIMIT 2"
    ((tree,),) = run("EXPLAIN FORMAT=TREE " + page.format(3))
    assert "Maintained view (partial by stories.author), looked up by stories.author, ordered by stories.id" in tree
    for _ in range(3):
        assert run(page.format(9)) == [(2, "b"), (1, "a")] and run(page.format(2)) == [(1, "a")]
    either = "SELECT id FROM stories WHERE author = {} OR id = {} ORDER BY id LIMIT 9"
    ((tree,),) = run("EXPLAIN FORMAT=TREE " + either.format(1, 2))
    assert "looked up by stories.id or stories.author" in tree
    for _ in range(3):
        assert run(either.format(1, 2)) == [(1,), (2,)] and run(either.format(7, 2)) == [(2,)]


def test_the_graph_is_for_graphviz(run: Run) -> None:
    ((graph,),) = run("EXPLAIN FORMAT=DOT " + VOTES.format(1))
    assert graph.startswith("digraph plan {") and "->" in graph and graph.rstrip().endswith("}")


def test_writes_are_explained_and_not_done(run: Run) -> None:
    assert run("EXPLAIN DELETE FROM votes WHERE id = 1")[0][2:5] == ("votes", None, "const")
    assert run("EXPLAIN UPDATE votes SET story = 5 WHERE story = 1")[0][4] == "ref"
    assert run("EXPLAIN INSERT INTO votes SELECT id + 10, id FROM stories")[0][2] == "votes"
    assert run("SELECT COUNT(*) FROM votes") == [(3,)]


def test_errors(run: Run) -> None:
    for sql, code in (
        ("EXPLAIN SELECT * FROM missing", 1146),
        ("EXPLAIN FORMAT=YAML SELECT 1", 1791),
        ("EXPLAIN ANALYZE FORMAT=JSON SELECT 1", 1235),
        ("EXPLAIN ANALYZE DELETE FROM stories", 1235),
        ("EXPLAIN FOR CONNECTION 1", 1235),
    ):
        with pytest.raises(pymysql.err.MySQLError) as raised:
            run(sql)
        assert raised.value.args[0] == code


def test_views_and_arrangements_are_tables(run: Run) -> None:
    query = "SELECT story, COUNT(*) FROM votes v JOIN stories s ON s.id = v.story WHERE story = {} GROUP BY story"
    for story in (1, 1, 1, 2, 2):
        run(query.format(story))
    found = run(
        "SELECT tables, state, reason, key_count, row_count, hits, misses FROM millrace.views "
        "WHERE tables = 'd.stories, d.votes' AND hits > 0 ORDER BY misses DESC, hits DESC LIMIT 1"
    )
    tables, state, reason, keys, rows, hits, misses = found[0]
    assert (tables, state, reason) == ("d.stories, d.votes", "partial", None)
    assert keys == rows == misses and hits >= 1
    assert run("SELECT COUNT(*) > 0 FROM millrace.arrangements WHERE bytes > 0") == [(1,)]
    assert run("SHOW TABLES FROM millrace") == [("arrangements",), ("feeds",), ("fills",), ("jobs",), ("nodes",), ("transitions",), ("views",)]
    [(users,)] = run("SELECT users FROM millrace.nodes WHERE operation LIKE 'table %votes' AND inputs = ''")
    assert users
    ends = run("SELECT SUM(views) FROM millrace.nodes")
    assert ends == run("SELECT COUNT(*) FROM millrace.views")
    places = "SELECT COUNT(*) FROM millrace.views v JOIN millrace.nodes n ON n.shard = v.shard AND n.node = v.node"
    assert run(places) == run("SELECT COUNT(*) FROM millrace.views")
    rows = "SELECT rows_in FROM millrace.nodes WHERE operation LIKE 'table %votes'"
    [(before,)] = run(rows)
    run("INSERT INTO votes VALUES (100, 1), (101, 2)")
    assert run(rows) == [(before + 2,)]
    run("DELETE FROM votes WHERE id >= 100")
    assert ("millrace",) not in run("SHOW DATABASES")
