"""The same function call as an expression of ours and as SQL for MariaDB.

A case is a tuple: the function's name and its arguments as Python values. What these stand
for in SQL: str is text, bytes a binary string, Decimal and float the two kinds of numbers,
`Unit` a keyword, and `day`, `moment` and `clock` typed dates and times.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pymysql

from dataflow.errors import MillraceError
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.functions import call
from dataflow.values.temporal import read_datetime, read_time
from dataflow.values.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    DATE,
    DOUBLE,
    NULL,
    Kind,
    SqlType,
    Value,
    decimal,
    text,
)
from tests.sent_values import sent_bytes

Case = tuple[Any, ...]
Answer = bytes | None | str
"""The text MySQL would send, or "error"."""


@dataclass(frozen=True)
class Unit:
    name: str


@dataclass(frozen=True)
class Typed:
    """A date or time literal such as DATE'2020-01-02', or a value with CAST around it."""

    sql: str
    value: Value
    type: SqlType


def _digits(value: str) -> int:
    return len(value.partition(".")[2])


def day(value: str) -> Typed:
    return Typed(f"DATE'{value}'", read_datetime(value)[0], DATE)


def moment(value: str) -> Typed:
    return Typed(f"TIMESTAMP'{value}'", read_datetime(value)[0], SqlType(Kind.DATETIME, scale=_digits(value)))


def clock(value: str) -> Typed:
    return Typed(f"TIME'{value}'", read_time(value)[0], SqlType(Kind.TIME, scale=_digits(value)))


def unsigned(value: int) -> Typed:
    return Typed(f"CAST({value} AS UNSIGNED)", value, BIGINT_UNSIGNED)


def literal(value: Any) -> Expression:
    match value:
        case None:
            return Literal(None, NULL)
        case Typed():
            return Literal(value.value, value.type)
        case Unit():
            return Literal(value.name, text(len(value.name)))
        case int():
            return Literal(value, BIGINT_UNSIGNED if value >= 1 << 63 else BIGINT)
        case Decimal():
            digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
            return Literal(value, decimal(max(len(digits), -exponent), -exponent))
        case float():
            return Literal(value, DOUBLE)
        case str():
            return Literal(value, text(len(value)))
        case bytes():
            return Literal(value, SqlType(Kind.VARBINARY, length=len(value)))
    raise AssertionError(value)


def sql_literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case Typed():
            return value.sql
        case Unit():
            return value.name
        case float():
            return f"{value!r}e0" if "e" not in repr(value) else repr(value)
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return f"{value:f}" if value.as_tuple().exponent else f"{value:f}."  # a point makes it a DECIMAL
        case _:
            return str(value)


_LAYOUTS = {
    "date_add": "DATE_ADD({}, INTERVAL {} {})",
    "date_sub": "DATE_SUB({}, INTERVAL {} {})",
    "extract": "EXTRACT({} FROM {})",
    "trim_leading": "TRIM(LEADING {1} FROM {0})",
    "trim_trailing": "TRIM(TRAILING {1} FROM {0})",
    "position": "POSITION({} IN {})",
}


def sql(case: Case) -> str:
    name, *arguments = case
    written = [sql_literal(argument) for argument in arguments]
    if name == "trim" and len(written) == 2:
        return "TRIM(BOTH {1} FROM {0})".format(*written)
    layout = _LAYOUTS.get(name)
    return layout.format(*written) if layout else f"{name.upper()}({', '.join(written)})"


def _sent(value: Value, kind: SqlType) -> bytes | None:
    sent = sent_bytes(value, kind)
    assert sent is None or isinstance(sent, bytes)
    return sent


def ours(case: Case) -> tuple[Answer, SqlType | None]:
    """What we answer, computed both when compiling and from a row; the two must agree."""
    name, *arguments = case
    try:
        expression = call(name, *map(literal, arguments))
        value = compile_scalar(expression)((), ())
    except MillraceError:
        return "error", None
    assert_value_fits(value, expression.type)
    answer = _sent(value, expression.type)
    if name != "coercibility":  # which is about just that
        assert _from_row(name, arguments) in (answer, None), f"{sql(case)} differs when its arguments are columns"
    return answer, expression.type


def _from_row(name: str, arguments: list[Any]) -> Answer:
    """The same with columns for arguments; None where that has another type, for it has another text then."""
    row = [literal(argument) for argument in arguments]
    columns = [
        node if isinstance(argument, Unit) or node.type.kind is Kind.NULL else Column(index, node.type)
        for index, (node, argument) in enumerate(zip(row, arguments))
    ]
    expression = call(name, *columns)
    if expression.type != call(name, *row).type:
        return None
    value = compile_scalar(expression)(tuple(node.value for node in row if isinstance(node, Literal)), ())
    assert_value_fits(value, expression.type)
    return _sent(value, expression.type)


_PYTHON: dict[Kind, type | tuple[type, ...]] = {
    Kind.DECIMAL: Decimal,
    Kind.DOUBLE: float,
    Kind.FLOAT: float,
    **dict.fromkeys((Kind.VARCHAR, Kind.TEXT, Kind.LONGTEXT, Kind.CHAR, Kind.JSON), str),
    **dict.fromkeys((Kind.VARBINARY, Kind.BLOB, Kind.LONGBLOB, Kind.BINARY), bytes),
}


def assert_value_fits(value: Value, kind: SqlType) -> None:
    """The Python value is what `dataflow.values.types` says for the type."""
    if value is None:
        return
    assert isinstance(value, _PYTHON.get(kind.kind, int)), f"{value!r} is no {kind}"
    if kind.kind is Kind.DECIMAL:
        assert isinstance(value, Decimal) and -int(value.as_tuple().exponent) == kind.scale, f"{value!r} is no {kind}"
    if kind.kind in (Kind.DATETIME, Kind.TIME) and isinstance(value, int):
        assert value % (1 << 24 if kind.kind is Kind.DATETIME else 1_000_000) % 10 ** (6 - kind.scale) == 0, f"{value!r} is no {kind}"
    if kind.kind is Kind.DATE and isinstance(value, int):
        assert value % (1 << 41) == 0, f"{value!r} is no {kind}"
    if kind.kind is Kind.VARCHAR and kind.length is not None and isinstance(value, str):
        assert len(value) <= kind.length, f"{value!r} is longer than {kind}"


class Oracle:
    """A MariaDB connection that answers with the bytes on the wire."""

    def __init__(self, connection: pymysql.connections.Connection[Any]) -> None:
        self._cursor = connection.cursor()

    def answer(self, case: Case) -> Answer:
        try:
            self._cursor.execute(f"SELECT {sql(case)}")
        except pymysql.err.MySQLError:
            return "error"
        (value,) = self._cursor.fetchone() or (None,)
        assert value is None or isinstance(value, bytes)
        return value


