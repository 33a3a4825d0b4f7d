"""Values as Spark's engine has them within data jobs: what comes out is exactly what went in.

| SQL                                    | Spark                                            |
|----------------------------------------|--------------------------------------------------|
| integers but BIGINT UNSIGNED, YEAR     | BIGINT                                           |
| BIGINT UNSIGNED, BIT                   | DECIMAL(20, 0)                                   |
| DECIMAL                                | the same, of at most 38 digits; a value that has more is an error |
| FLOAT, DOUBLE                          | DOUBLE                                           |
| dates, times                           | BIGINT, packed as `dataflow.values.temporal` does |
| texts, ENUM, SET, JSON; binary strings | STRING; BINARY                                   |

The data source for users maps types otherwise, see `backend.spark.column_types`.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dataflow.schema import Table
from dataflow.values.types import BIGINT, BLOBS, INTEGERS, REALS, STRINGS, TEMPORALS, Kind, SqlType, Value

DIGITS_MAX = 38
UNSIGNED_DIGITS = 20


class NoForm(Exception):
    """Spark has no exact form of a query, for the reason given."""


def is_wide(kind: SqlType) -> bool:
    """Whether it is an integer that may have 64 bits and no sign."""
    return kind.kind is Kind.BIT or (kind.kind is Kind.BIGINT and kind.unsigned)


def digits_of(kind: SqlType) -> tuple[int, int]:
    """How many digits a number of the type has before and behind its point, as far as Spark knows so many."""
    if kind.kind is Kind.DECIMAL:
        return min(kind.length or 10, DIGITS_MAX) - kind.scale, kind.scale
    return UNSIGNED_DIGITS, 0


def spark_type(kind: SqlType) -> str:
    """What Spark calls the type; raises `NoForm`."""
    if is_wide(kind):
        return f"DECIMAL({UNSIGNED_DIGITS}, 0)"
    if kind.kind in INTEGERS or kind.kind in TEMPORALS or kind.kind is Kind.YEAR:
        return "BIGINT"
    if kind.kind is Kind.DECIMAL:
        return f"DECIMAL({sum(digits_of(kind))}, {kind.scale})"
    if kind.kind in REALS:
        return "DOUBLE"
    if kind.kind in STRINGS:
        return "STRING"
    if kind.kind in BLOBS:
        return "BINARY"
    raise NoForm(f"values of type {kind.kind.value}")


def arrow_type_of(spark: str) -> pa.DataType:
    """The Arrow type that Spark takes for a type of its own."""
    if spark.startswith("DECIMAL("):
        digits, scale = spark.removeprefix("DECIMAL(").rstrip(")").split(",")
        return pa.decimal128(int(digits), int(scale))
    return {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string(), "BINARY": pa.binary()}[spark]


def packed_table(table: Table) -> Table:
    """The table as a scan is told of it: dates and times are the numbers that are stored."""
    columns = [replace(each, type=BIGINT) if each.type.kind in TEMPORALS else each for each in table.columns]
    return replace(table, columns=tuple(columns))


def values_of(column: Any, kind: SqlType) -> list[Value]:
    """A column of Spark's result as `dataflow.values.types` has its values."""
    found: list[Value] = column.to_pylist()
    if kind.kind is Kind.DECIMAL or not pa.types.is_decimal(column.type):
        return found
    return [int(each) if isinstance(each, Decimal) else each for each in found]
