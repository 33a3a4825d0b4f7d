"""Every kind of value put into every type of column is stored, or refused, as MariaDB does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from dataflow.errors import MillraceError
from dataflow.values.modes import Modes
from dataflow.values.storing import Report, column_storer
from dataflow.values.types import (
    BLOBS,
    DATES,
    INTEGERS,
    NUMBERS,
    REALS,
    TEMPORALS,
    TEXTS,
    Kind,
    SqlType,
    Value,
)
from tests.mariadb import MariaDB
from tests.sent_values import sent_bytes
from tests.unit.dataflow.differential import ENCODERS
from tests.unit.dataflow.random_expressions import COLLATION, sql_literal
from tests.unit.dataflow.storing_samples import COLUMNS, VALUES

STRICT = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,TIME_ROUND_FRACTIONAL"
RELAXED = "NO_ZERO_DATE,NO_ZERO_IN_DATE,TIME_ROUND_FRACTIONAL"
LENIENT = "TIME_ROUND_FRACTIONAL"

Outcome = bytes | int | None
"""What is stored, as text, or the code of the error."""


@pytest.fixture(scope="module")
def cursor(mariadb: MariaDB) -> Iterator[Any]:
    connection = mariadb.connect(mariadb.fresh_database(), conv=ENCODERS)
    cursor = connection.cursor()
    cursor.execute(f"SET NAMES utf8mb4 COLLATE {COLLATION}")
    for number, (sql, type_) in enumerate(COLUMNS):
        charset = f" COLLATE {COLLATION}" if type_.collation == COLLATION else ""
        cursor.execute(f"CREATE TABLE c{number} (id INT PRIMARY KEY, v {sql.replace(' NULL', '')}{charset} NULL)")
    yield cursor
    connection.close()


def theirs(cursor: Any, number: int, mode: str) -> list[Outcome]:
    cursor.execute("SET sql_mode = %s", (mode,))
    cursor.execute(f"TRUNCATE c{number}")
    refused: dict[int, int] = {}
    rows = [f"({position}, {sql_literal(value, type_)})" for position, (value, type_) in enumerate(VALUES)]
    if mode is not STRICT:
        rows = [", ".join(rows)]  # nothing is refused
    for position, row in enumerate(rows):
        try:
            cursor.execute(f"INSERT INTO c{number} VALUES {row}")
        except pymysql.MySQLError as error:
            refused[position] = int(error.args[0])
    cursor.execute(f"SELECT id, v FROM c{number}")
    stored = {int(id_): value.encode() if isinstance(value, str) else value for id_, value in cursor.fetchall()}
    return [refused.get(position, stored.get(position)) for position in range(len(VALUES))]


def ours(column: SqlType, mode: str) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for value, source in VALUES:
        try:
            stored = column_storer(column, source, "v", Modes.parse(mode))(value, Report())
        except MillraceError as error:
            outcomes.append(error.condition.code)
            continue
        outcomes.append(sent_bytes(stored, column))
    return outcomes


def known_difference(column: SqlType, value: Value, source: SqlType, theirs: Outcome, ours: Outcome) -> str | None:
    """Why MySQL's outcome, which is ours, is not MariaDB's."""
    if column.kind in REALS and theirs == 1366 and ours == 1265:
        return "MySQL reports 1265 for text that is no number in a FLOAT or DOUBLE"
    if column.kind in DATES and source.kind is Kind.TIME:
        return "both add the current date, which we have not"
    if value == "2020.01.02" and column.kind in NUMBERS:
        return "MariaDB skips a second decimal point"
    if source == SqlType(Kind.DATETIME, scale=6) and column.kind in INTEGERS:
        return "MySQL rounds the fraction of a second"
    if column.kind is Kind.BIT and isinstance(value, float):
        return "what does not fit into 64 bits is undefined there"
    if column.kind is Kind.YEAR and (source.kind in TEMPORALS or ours == 1265):
        return "MySQL takes the year of a date; and an error of the text comes before one of range"
    if column.kind is Kind.TIME and (theirs in (b"00:00:00", b"00:00:00.00") or value in (".5", "+7", "0000-00-00 00:00:00")):
        return "MariaDB reads large numbers as dates, and other texts as no time at all"
    if column.kind is Kind.TIME and isinstance(theirs, bytes) and b"838:59:59.9" in theirs:
        return "the largest TIME of MySQL has no fraction"
    if isinstance(value, float) and (column.kind in TEXTS or column.kind in BLOBS):
        return "MariaDB shortens a double until it fits"
    if theirs == 1366 and ours == 1406:
        return "MariaDB reports the character that was cut in two"
    if column.kind is Kind.SET and (isinstance(value, str) or not isinstance(value, int)):
        return "MariaDB keeps the known bits of a number that is too large"
    return None


@pytest.mark.parametrize("mode", [STRICT, RELAXED, LENIENT])
@pytest.mark.parametrize("number", range(len(COLUMNS)), ids=lambda number: COLUMNS[number][0])
def test_stored_values_equal_mariadbs(cursor: Any, number: int, mode: str) -> None:
    column = COLUMNS[number][1]
    found = [
        (value, source.kind.value, expected, actual)
        for (value, source), expected, actual in zip(VALUES, theirs(cursor, number, mode), ours(column, mode))
        if expected != actual and known_difference(column, value, source, expected, actual) is None
    ]
    assert found == []
