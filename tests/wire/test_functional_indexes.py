"""Indexes on expressions: unique where they say so, and shown as MySQL shows them."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest


def test_expressions_may_be_indexed(run: Any) -> None:
    run("DROP TABLE IF EXISTS functional")
    run("CREATE TABLE functional (id INT PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_bin, n INT, KEY sums ((n + id), name))")
    run("INSERT INTO functional VALUES (1, 'Abc', 5), (2, 'ABD', 6)")
    run("CREATE UNIQUE INDEX lowered ON functional ((LOWER(name)))")
    with pytest.raises(pymysql.err.IntegrityError):
        run("INSERT INTO functional VALUES (3, 'abc', 7)")
    run("ALTER TABLE functional ADD INDEX descending ((n * 2) DESC)")
    assert run("SELECT * FROM functional WHERE LOWER(name) = 'abd'") == [(2, "ABD", 6)]
    [(_, text)] = run("SHOW CREATE TABLE functional")
    assert "UNIQUE KEY `lowered` ((lower(`name`)))" in text.replace("LOWER", "lower")
    assert "KEY `sums` (((`n` + `id`)),`name`)" in text
    assert "!hidden!" not in text
    assert [row[4] for row in run("SHOW INDEX FROM functional") if row[2] == "sums"] == [None, "name"]
    assert [row[0] for row in run("SHOW COLUMNS FROM functional")] == ["id", "name", "n"]
    run("DROP INDEX lowered ON functional")
    run("INSERT INTO functional VALUES (3, 'abc', 7)")
    assert run("SELECT COUNT(*) FROM functional") == [(3,)]


@pytest.mark.parametrize(
    ("element", "code"),
    [("KEY ((RAND()))", 3758), ("y DOUBLE GENERATED ALWAYS AS (RAND()) STORED", 3763), ("CHECK (x > RAND())", 3814)],
)
def test_what_is_stored_must_not_depend_on_chance(run: Any, element: str, code: int) -> None:
    with pytest.raises(pymysql.MySQLError) as raised:
        run(f"CREATE TABLE by_chance (x INT, {element})")
    assert raised.value.args[0] == code


def test_a_table_without_a_primary_key_outlives_its_index_on_an_expression(run: Any) -> None:
    run("DROP TABLE IF EXISTS unkeyed")
    run("CREATE TABLE unkeyed (a INT, b INT, KEY sums ((a + b)), KEY (b))")
    run("INSERT INTO unkeyed VALUES (1, 2), (3, 4)")
    run("DROP INDEX sums ON unkeyed")
    run("UPDATE unkeyed SET a = 5 WHERE b = 4")
    run("INSERT INTO unkeyed VALUES (6, 7)")
    assert run("SELECT a FROM unkeyed ORDER BY b") == [(1,), (5,), (6,)]
