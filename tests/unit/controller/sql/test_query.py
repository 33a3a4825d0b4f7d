"""Queries as nodes: equal where they mean the same, parameters apart, errors as MySQL's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller.sql.plan import Query
from controller.sql.planner import plan
from dataflow.errors import MillraceError
from dataflow.expressions.expression import Parameter, walk
from dataflow.plan.node import Aggregate, Base, Join, LeftJoin, Node, SemiJoin, TopK, inputs_of
from dataflow.values.types import BIGINT, text
from tests.unit.controller.sql.world import World

WORLD = World(
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(20), team INT)",
    "CREATE TABLE stories (id INT PRIMARY KEY, author INT, title VARCHAR(20), points INT NOT NULL, KEY k (author))",
    "CREATE TABLE votes (story INT NOT NULL, user INT NOT NULL, vote INT, PRIMARY KEY (story, user))",
    "CREATE VIEW tally AS SELECT story, COUNT(*) AS n FROM votes WHERE vote = 1 GROUP BY story",
)


def query(sql: str) -> Query:
    count = sql.count("?")
    types = [text(10) if "name = ?" in sql else BIGINT] * count
    found = plan(sql, WORLD.catalog, "db", WORLD.settings, types).statement
    assert isinstance(found, Query)
    return found


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for each in inputs_of(node):
        yield from nodes(each)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # names of tables and columns do not matter
        ("SELECT u.name FROM users u JOIN stories s ON s.author = u.id", "SELECT x.name AS n FROM users x JOIN stories y ON y.author = x.id"),
        # nor does the order of tables, of conditions and of their sides
        ("SELECT u.name FROM users u JOIN stories s ON s.author = u.id", "SELECT u.name FROM stories s JOIN users u ON u.id = s.author"),
        ("SELECT u.name FROM users u JOIN stories s ON s.author = u.id", "SELECT u.name FROM users u, stories s WHERE u.id = s.author"),
        (
            "SELECT u.name FROM users u JOIN stories s ON s.author = u.id WHERE s.points > 3 AND u.team = 1",
            "SELECT u.name FROM users u JOIN stories s ON s.author = u.id WHERE 1 = u.team AND 3 < s.points",
        ),
        ("SELECT u.id FROM users u JOIN stories s ON s.author = u.id", "SELECT id FROM (SELECT u.id, s.title FROM users u JOIN stories s ON s.author = u.id) d"),
        ("SELECT s.id FROM stories s JOIN tally t ON t.story = s.id", "SELECT s.id FROM (SELECT story, COUNT(*) AS c FROM votes WHERE vote = 1 GROUP BY story) x JOIN stories s ON s.id = x.story"),
        ("SELECT id FROM users WHERE EXISTS (SELECT 1 FROM stories WHERE author = users.id)", "SELECT id FROM users u WHERE u.id IN (SELECT author FROM stories)"),
        ("SELECT id FROM users u LEFT JOIN votes v ON v.user = u.id WHERE v.vote = 1", "SELECT id FROM users u JOIN votes v ON v.user = u.id WHERE v.vote = 1"),
        ("SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id", "SELECT u.id, s.id FROM stories s RIGHT JOIN users u ON s.author = u.id"),
    ],
)  # fmt: skip
def test_queries_that_mean_the_same_are_one_node(one: str, other: str) -> None:
    assert query(one).node == query(other).node
    assert hash(query(one).node) == hash(query(other).node)


def test_equalities_of_columns_are_join_keys_and_other_conditions_filters() -> None:
    node = query("SELECT u.id FROM users u JOIN stories s ON s.author = u.id AND s.points > u.team").node
    assert isinstance(node, Join)
    assert len(node.equalities) == 1
    assert node.filter is not None


def test_texts_of_different_collations_are_no_join_key() -> None:
    node = query("SELECT u.id FROM users u JOIN stories s ON s.title COLLATE utf8mb4_bin = u.name").node
    assert isinstance(node, Join)
    assert not node.equalities


def test_equality_with_a_parameter_is_a_key_and_leaves_the_node_shareable() -> None:
    found = query("SELECT u.name FROM users u JOIN stories s ON s.author = u.id WHERE s.id = ? AND s.points > ?")
    assert len(found.keys) == 1
    assert found.filter is not None
    assert found.shareable


def test_several_values_of_a_parameter_list_are_one_key() -> None:
    found = query("SELECT s.id, t.n FROM stories s LEFT JOIN tally t ON t.story = s.id WHERE s.id IN (?, ?, ?)")
    assert [len(key.values) for key in found.keys] == [3]


def test_a_key_is_carried_through_groups() -> None:
    found = query("SELECT v.user, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id WHERE s.author = ? GROUP BY v.user")
    assert isinstance(found.node, Aggregate)
    assert len(found.node.group) == 2
    assert found.shareable


def test_values_that_would_share_a_group_are_no_key() -> None:
    found = query("SELECT v.user, COUNT(*) FROM stories s JOIN votes v ON v.story = s.id WHERE s.author IN (?, ?) GROUP BY v.user")
    assert not found.keys
    assert not found.shareable


def test_an_aggregate_by_key_has_a_row_for_keys_without_rows() -> None:
    found = query("SELECT COUNT(*), SUM(v.vote) FROM stories s JOIN votes v ON v.story = s.id WHERE s.author = ?")
    assert found.default is not None
    assert sorted(found.default, key=repr) == [0, None, None]


def test_parameters_elsewhere_stay_in_the_node() -> None:
    found = query("SELECT s.author, SUM(v.vote + ?) FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.author")
    assert not found.shareable
    (aggregate,) = [each for each in nodes(found.node) if isinstance(each, Aggregate)]
    parts = [part for each in aggregate.functions for argument in each.arguments for part in walk(argument)]
    assert any(isinstance(part, Parameter) for part in parts)


def test_a_correlated_aggregate_is_computed_for_all_keys_at_once() -> None:
    node = query("SELECT u.id, (SELECT COUNT(*) FROM stories s WHERE s.author = u.id) AS n FROM users u").node
    (joined,) = [each for each in nodes(node) if isinstance(each, LeftJoin)]
    assert isinstance(joined.left, Base)
    assert isinstance(joined.right, Aggregate)
    assert joined.right.group == (1,)


def test_not_in_looks_for_nulls_only_where_there_may_be_some() -> None:
    nullable = query("SELECT id FROM users WHERE id NOT IN (SELECT author FROM stories)").node
    certain = query("SELECT id FROM users WHERE id NOT IN (SELECT user FROM votes)").node
    assert sum(isinstance(each, SemiJoin) for each in nodes(nullable)) == 2
    assert sum(isinstance(each, SemiJoin) for each in nodes(certain)) == 1


def test_limit_inside_is_a_top_k_and_outside_is_not() -> None:
    node = query("SELECT d.id FROM (SELECT id FROM stories ORDER BY points DESC LIMIT 3) d JOIN users u ON u.id = d.id LIMIT 2").node
    assert [each.limit for each in nodes(node) if isinstance(each, TopK)] == [3]


def test_columns_that_depend_on_a_grouped_key_may_be_selected() -> None:
    query("SELECT u.*, COUNT(*) FROM users u JOIN stories s ON s.author = u.id GROUP BY u.id")
    query("SELECT u.name, COUNT(*) FROM users u JOIN stories s ON s.author = u.id GROUP BY s.author")
    query("SELECT s.title, t.n FROM stories s LEFT JOIN tally t ON t.story = s.id GROUP BY s.id")
    query("SELECT u.name, COUNT(*) FROM users u JOIN stories s ON s.author = u.id WHERE u.id = 5")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT s.title, COUNT(*) FROM users u JOIN stories s ON s.author = u.id GROUP BY u.id", 1055),
        ("SELECT u.id, COUNT(*) FROM users u JOIN stories s ON s.author = u.id", 1140),
        ("SELECT DISTINCT u.name FROM users u JOIN stories s ON s.author = u.id ORDER BY s.points", 3065),
        ("SELECT * FROM (SELECT 1)", 1248),
        ("SELECT 1 FROM users JOIN users ON 1", 1066),
        ("SELECT id FROM users u JOIN stories s ON s.author = u.id", 1052),
        ("SELECT (SELECT 1, 2)", 1241),
        ("SELECT 1 UNION SELECT 1, 2", 1222),
        ("WITH RECURSIVE c AS (SELECT n FROM c) SELECT * FROM c", 3573),
        ("SELECT u.id FROM users u JOIN stories s ON s.author = u.id WHERE ROW_NUMBER() OVER () = 1", 3593),
        ("SELECT ROW_NUMBER() OVER w FROM users u JOIN stories s ON s.author = u.id", 3579),
    ],
)
def test_errors_have_the_codes_of_mysql(sql: str, code: int) -> None:
    with pytest.raises(MillraceError) as raised:
        query(sql)
    assert raised.value.condition.code == code


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM (SELECT id FROM stories ORDER BY points DESC LIMIT 3) d",
        "SELECT id FROM (SELECT id, points FROM stories ORDER BY points DESC) d",
        "SELECT n FROM (SELECT author, COUNT(*) AS n FROM stories GROUP BY author ORDER BY SUM(points) DESC) d",
        "SELECT id FROM (SELECT id FROM (SELECT id FROM stories ORDER BY points DESC LIMIT 3) d) e LIMIT 1",
    ],
)
def test_the_order_of_the_only_derived_table_is_kept(sql: str) -> None:
    assert [item.descending for item in query(sql).order_by] == [True]
    assert len(query(sql).columns) == 1
