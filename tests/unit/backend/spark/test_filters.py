"""Which of Spark's filters become SQL, and which of them Spark has to evaluate all the same."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from backend.spark.filters import conditions_of
from dataflow.values.types import DATE, DATETIME, INT, SqlType, decimal, text

KINDS: dict[str, SqlType] = {"n": INT, "money": decimal(8, 2), "name": text(20), "day": DATE, "at": DATETIME, "a`b": INT}
DAY = datetime.date(2020, 1, 2)


@pytest.mark.parametrize(
    ("filter", "condition", "is_left"),
    [
        (spark.EqualTo(("n",), 1), "`n` = 1", False),
        (spark.LessThan(("a`b",), -1), "`a``b` < -1", False),
        (spark.Not(spark.EqualTo(("n",), 1)), "NOT (`n` = 1)", False),
        (spark.GreaterThanOrEqual(("money",), Decimal("1E+2")), "`money` >= 100", False),
        (spark.In(("n",), (1, 2)), "`n` IN (1, 2)", False),
        (spark.In(("n",), (1, None)), None, True),
        (spark.IsNull(("name",)), "`name` IS NULL", False),
        (spark.IsNotNull(("n",)), "`n` IS NOT NULL", False),
        (spark.EqualTo(("name",), "it's \\"), "`name` = 'it\\'s \\\\'", True),
        (spark.In(("name",), ("a", "b")), "`name` IN ('a', 'b')", True),
        (spark.Not(spark.EqualTo(("name",), "a")), None, True),
        (spark.GreaterThan(("name",), "a"), None, True),
        (spark.StringStartsWith(("name",), "a"), None, True),
        (spark.LessThan(("day",), DAY), "`day` < DATE '2020-01-02'", True),
        (spark.IsNull(("day",)), None, True),
        (spark.IsNotNull(("day",)), "`day` IS NOT NULL", True),
        (spark.EqualTo(("at",), datetime.datetime(2020, 1, 1)), None, True),
        (spark.EqualTo(("n",), True), None, True),
        (spark.EqualTo(("unknown",), 1), None, True),
        (spark.EqualTo(("n", "inner"), 1), None, True),
        (spark.EqualNullSafe(("n",), 1), None, True),
    ],
    ids=str,
)
def test_a_filter_is_sql_where_that_lets_no_row_pass_by(filter: Any, condition: str | None, is_left: bool) -> None:
    conditions, left = conditions_of([filter], KINDS)
    assert conditions == ([] if condition is None else [condition])
    assert left == ([filter] if is_left else [])
