"""Which index answers which condition, and which conditions none may answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.execution.evaluation.access import bind, choose
from controller.sql.plan import Query
from controller.sql.query.one_table import over_one_table
from controller.sql.settings import DEFAULT_SETTINGS
from tests.unit.backend.execution.engine import Engine, run

TABLE = (
    "CREATE TABLE t (a INT, b VARCHAR(20), c DATE, d DECIMAL(8,2), e VARCHAR(20) COLLATE utf8mb4_bin, f ENUM('x','y'),"
    " PRIMARY KEY (a, b), UNIQUE KEY u (d), KEY k (c, a), KEY i (e), KEY p (b(3)), KEY j (f))"
)


@pytest.mark.parametrize(
    ("where", "index", "is_complete"),
    [
        ("a = 1 AND b = 'x'", "PRIMARY", True),
        ("a IN (1, 2) AND b IN ('x', 'y')", "PRIMARY", True),
        ("a = 1", "PRIMARY", False),
        ("a > 1 AND a < 5", "PRIMARY", False),
        ("5 > a", "PRIMARY", False),
        ("d = 1.5", "u", True),
        ("d = 1.5 AND a = 1", "u", True),
        ("d BETWEEN 1 AND 2", "u", False),
        ("c = '2020-01-01'", "k", False),
        ("c = '2020-01-01' AND a > 3", "k", False),
        ("c IS NULL", "k", False),
        ("e = 'x'", "i", False),
        ("f = 'y'", "j", False),
        ("a = '1' AND b = 'x'", "PRIMARY", True),
        ("a = 'abc'", "PRIMARY", False),  # which is 0
        ("d = '1.5 apples'", "u", True),
        ("c = 'no date'", "k", False),
    ],
)
def test_an_index_is_used(where: str, index: str, is_complete: bool, tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        plan, values = engine.plans.plan_text(f"SELECT * FROM t WHERE {where}", engine.database.catalog, "d", DEFAULT_SETTINGS)
        assert isinstance(plan.statement, Query)
        one = over_one_table(plan.statement)
        assert one is not None and one.table is not None
        path = choose(one.table, one.filter)
        assert path.index.name == index and (path.equalities or path.comparisons)
        assert path.is_complete == is_complete
        assert bind(path, tuple(values)) is not None

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "where",
    [
        "a = 1 OR b = 'x'",
        "a + 1 = 2",
        "b = 'x'",  # the second part of a key, and a prefix
        "e = 5",  # numbers compare with texts as numbers: '5', '05' and '5 apples'
        "e = 'x' COLLATE utf8mb4_general_ci",
        "f < 'y'",  # compares as text, not by position
        "f = 'Y'",
        "a <> 1",
    ],
)
def test_no_index_is_used(where: str, tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        plan, values = engine.plans.plan_text(f"SELECT * FROM t WHERE {where}", engine.database.catalog, "d", DEFAULT_SETTINGS)
        assert isinstance(plan.statement, Query)
        one = over_one_table(plan.statement)
        assert one is not None and one.table is not None
        path = choose(one.table, one.filter)
        assert (not path.equalities and not path.comparisons) or bind(path, tuple(values)) is None

    run(tmp_path, scenario)


def test_rows_by_primary_key_come_in_its_order_whatever_the_shards(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT PRIMARY KEY)")
        await engine.run(f"INSERT INTO t VALUES {', '.join(f'({number})' for number in range(1000))}")
        everything = [(number,) for number in range(1000)]
        assert await engine.rows("SELECT a FROM t") == everything
        assert await engine.rows("SELECT a FROM t ORDER BY a DESC") == everything[::-1]
        assert await engine.rows("SELECT a FROM t WHERE a >= 500 LIMIT 3") == [(500,), (501,), (502,)]
        assert await engine.rows("SELECT a FROM t WHERE a < 500 ORDER BY a DESC LIMIT 2 OFFSET 1") == [(498,), (497,)]
        assert await engine.rows("SELECT a FROM t WHERE a IN (7, 3, 900) ORDER BY a DESC") == [(900,), (7,), (3,)]
        transaction = engine.database.begin()
        await engine.run("DELETE FROM t WHERE a % 2 = 0", transaction)
        await engine.run("INSERT INTO t VALUES (-1), (2000), (500)", transaction)
        mixed = sorted([(-1,), (500,), (2000,)] + everything[1::2])
        assert await engine.rows("SELECT a FROM t ORDER BY a", transaction) == mixed
        assert await engine.rows("SELECT a FROM t ORDER BY a DESC", transaction) == mixed[::-1]

    run(tmp_path, scenario)
