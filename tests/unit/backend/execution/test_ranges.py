"""What of a query's conditions becomes a range of its view."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from backend.execution.answering.ranges import NOTHING, SPARE_ROWS, QueryRange, prefix_range, range_of
from backend.views.view_range import EncodedRange, Range, RangeDecoder
from controller.sql.plan import Query
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.expressions.expression import Column
from dataflow.functions.patterns import like_matcher
from dataflow.values.collation.keys import collation_key
from dataflow.values.ordering import Bound, range_bound
from dataflow.values.types import Value, text
from tests.unit.controller.sql.world import World

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, n INT, d DATE, s VARCHAR(20), j JSON, e ENUM('b', 'a'), KEY (k))"
WORLD = World(TABLE)
NAMES = ("id", "k", "n", "d", "s", "j", "e")
NULLS: Bound = ((None,), True)


def planned(where: str, tail: str = "ORDER BY n, id LIMIT 5") -> tuple[Query, QueryRange | None, Sequence[Value]]:
    sql = f"SELECT {', '.join(NAMES)} FROM t WHERE {where} {tail}"
    plan, values = PlanCache().plan_text(sql, WORLD.catalog, "db", DEFAULT_SETTINGS)
    assert isinstance(plan.statement, Query)
    key = tuple(sorted(each.column for each in plan.statement.keys))
    return plan.statement, range_of(plan.statement, key, plan.statement.filter), values


def names(query: Query, order: Sequence[int]) -> tuple[str, ...]:
    places = {each.index: name for each, name in zip(query.outputs, NAMES) if isinstance(each, Column)}
    return tuple(places[column] for column in order)


@pytest.mark.parametrize(
    ("where", "low", "high", "exact"),
    [
        ("k = 1 AND n > 5", ((5,), True), None, True),
        ("k = 1 AND 5 >= n", NULLS, ((5,), True), True),
        ("k = 1 AND n >= 5 AND n < 9 AND n > 4", ((5,), False), ((9,), False), True),
        ("k = 1 AND n BETWEEN 5 AND 2.5 + 4", ((5,), False), ((6.5,), True), True),
        ("n BETWEEN '5' AND '7'", ((5,), False), ((7,), True), True),
        ("k = 1 AND n > 5 AND s <> 'x'", ((5,), True), None, False),
        ("k = 1 AND (n, id) < (5, 7)", NULLS, ((5,), True), False),
        ("k = 1 AND (n > 5 OR n = 6 AND id > 7)", ((5,), False), None, False),
        ("k = 1 AND (n < 5 OR n = NULL AND id < 7)", NULLS, ((5,), True), False),
        ("k = 1 AND s <> 'x'", None, None, False),
    ],
)
def test_bounds(where: str, low: Bound | None, high: Bound | None, exact: bool) -> None:
    query, found, values = planned(where)
    assert found is not None and names(query, found.order) == ("n", "id")
    assert found.bind(values) == Range(low, high, 5 if exact else 5 + SPARE_ROWS)
    assert found.exact is exact and found.wanted(values) == 5


def test_the_order_is_that_of_order_by_where_it_begins_with_the_column() -> None:
    for tail, order, limit, descending in (
        ("ORDER BY n DESC, id DESC LIMIT 3 OFFSET 4", ("n", "id"), 7, True),
        ("ORDER BY k, n, id LIMIT 3", ("n", "id"), 3, False),
        ("ORDER BY n DESC, id LIMIT 3", ("n",), None, False),
        ("ORDER BY id LIMIT 3", ("n",), None, False),
        ("ORDER BY n + 1 LIMIT 3", ("n",), None, False),
    ):
        query, found, values = planned("k = 1 AND n > 5", tail)
        assert found is not None and names(query, found.order) == order, tail
        assert found.bind(values) == Range(((5,), True), None, limit, descending), tail


def test_what_is_compared_otherwise_than_the_column_is_no_range() -> None:
    for where in ("s > 5", "s BETWEEN 'a' AND 5", "d > 20200101", "j > 'a'", "e > 'a'", "n > id", "s > 'a' COLLATE utf8mb4_bin"):
        _, found, values = planned(f"k = 1 AND {where}", "ORDER BY s DESC, n LIMIT 5")
        assert found is None or found.bind(values) is None, where
    for where in ("n > 5 + NULL", "n < 9 AND n > 1 + NULL"):
        _, found, values = planned(f"k = 1 AND {where}")
        assert found is not None and found.bind(values) is NOTHING, where


@pytest.mark.parametrize(
    "collation",
    ["utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_as_ci", "utf8mb4_0900_bin",
     "utf8mb4_unicode_ci", "latin1_swedish_ci", "ascii_general_ci"],
)  # fmt: skip
def test_every_text_that_a_pattern_matches_is_in_its_range(collation: str) -> None:
    random = Random(collation)
    kind = text(20, collation)
    key = (lambda value: value) if collation == "utf8mb4_0900_bin" else collation_key(collation)
    letters = "aAbBäéß %_zZ\u0301\U0010ffff\ud7ff" if collation != "ascii_general_ci" else "aAbB %_zZ~"
    matched = 0
    for _ in range(3000):
        found = "".join(random.choices(letters, k=random.randint(0, 4)))
        start = found[: random.randint(1, 3)] if random.random() < 0.7 else random.choice(letters)
        pattern = random.choice([start, start.swapcase()]) + random.choice(["%", "", "_", "b%"])
        ends = prefix_range(pattern, kind, "\\")
        if ends is None or not like_matcher(pattern, "\\", collation)(found):
            continue
        low, high = range_bound(ends[0]), range_bound(ends[1])
        entry = ((True, key(found)),)
        assert low is not None and low <= entry and (high is None or entry < high), (pattern, found)
        matched += 1
    assert matched > 50


def test_ranges_travel_as_they_are() -> None:
    _, found, _ = planned("k = 1 AND n > 5")
    assert found is not None
    decoder = RangeDecoder(found.types)
    for part in (Range(((5,), True), ((7, None), False), 3, True), Range(), Range(NULLS, ((2.5,), True))):
        encoded = part.encoded()
        assert isinstance(encoded, EncodedRange) and decoder.decode(encoded) == part
