"""Spark's filters as conditions of SQL, as far as both mean the same, or SQL lets more rows pass.

Spark compares texts byte by byte, a column by its collation; a date that no calendar has is NULL in Spark. Such a filter
goes along, so that fewer rows are sent, and is left to Spark as well.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pymysql.converters import escape_string
from pyspark.sql import datasource as spark

from controller.sql.text.lexer import quoted
from dataflow.values.types import INTEGERS, TEXTS, Kind, SqlType

_COMPARISONS = {
    spark.EqualTo: "=", spark.GreaterThan: ">", spark.GreaterThanOrEqual: ">=", spark.LessThan: "<", spark.LessThanOrEqual: "<="
}  # fmt: skip


def conditions_of(filters: Sequence[Any], kinds: Mapping[str, SqlType]) -> tuple[list[str], list[Any]]:
    """(conditions of SQL, filters that Spark has to evaluate); `kinds` are the columns that can be compared."""
    conditions, left = [], []
    for each in filters:
        found = _condition(each, kinds)
        if found is not None:
            conditions.append(found[0])
        if found is None or not found[1]:
            left.append(each)
    return conditions, left


def _condition(filter: Any, kinds: Mapping[str, SqlType]) -> tuple[str, bool] | None:
    """The condition, and whether it means the same."""
    if isinstance(filter, spark.Not):
        inner = _condition(filter.child, kinds)
        return (f"NOT ({inner[0]})", True) if inner is not None and inner[1] else None
    path: tuple[str, ...] = getattr(filter, "attribute", ())
    kind = kinds.get(path[0]) if len(path) == 1 else None
    if kind is None:
        return None
    name, is_exact = quoted(path[0]), kind.kind in INTEGERS or kind.kind is Kind.DECIMAL
    if isinstance(filter, spark.IsNull | spark.IsNotNull):
        test = "IS NULL" if isinstance(filter, spark.IsNull) else "IS NOT NULL"
        if kind.kind is Kind.DATE:
            return None if isinstance(filter, spark.IsNull) else (f"{name} {test}", False)
        return f"{name} {test}", True
    if isinstance(filter, spark.In):
        values = [_literal(each, kind) for each in filter.value]
        found = [each for each in values if each is not None]
        return (f"{name} IN ({', '.join(found)})", is_exact) if found and len(found) == len(values) else None
    operator = _COMPARISONS.get(type(filter))
    if operator is None or (operator != "=" and kind.kind in TEXTS):
        return None
    literal = _literal(filter.value, kind)
    return None if literal is None else (f"{name} {operator} {literal}", is_exact)


def _literal(value: Any, kind: SqlType) -> str | None:
    """The value in SQL; None where the column is compared in another way."""
    if kind.kind in INTEGERS or kind.kind is Kind.DECIMAL:
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        return f"{value:f}" if is_number and isinstance(value, Decimal) else str(value) if is_number else None
    if kind.kind in TEXTS:
        return f"'{escape_string(value)}'" if isinstance(value, str) else None
    is_date = kind.kind is Kind.DATE and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return f"DATE '{value.isoformat()}'" if is_date else None
