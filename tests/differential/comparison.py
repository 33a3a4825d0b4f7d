"""Two servers given the same statements, and what counts as the same answer.

A peer is anything that runs SQL text: MariaDB or millrace through a MySQL driver, or the
engine in this process. Values are compared as the text protocol sends them.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose
from typing import Any, Protocol

import pymysql
from pymysql.constants import FIELD_TYPE

from tests.differential.generator import Generated

Cell = bytes | None

SAME_ERRORS = {
    4025: 3819,  # CHECK violated: MariaDB has a code of its own
    167: 1467,  # AUTO_INCREMENT is used up
}


@dataclass(frozen=True)
class Answer:
    """Rows, or counts, or an error code. `floats` are the result columns of approximate type."""

    rows: list[tuple[Cell, ...]] | None = None
    affected: int = 0
    last_insert_id: int = 0
    error: int = 0
    message: str = ""
    floats: frozenset[int] = frozenset()


class Peer(Protocol):
    def run(self, sql: str) -> Answer: ...


class DriverPeer:
    """A server behind PyMySQL."""

    def __init__(self, connection: pymysql.connections.Connection[Any], sql_mode: str | None = None) -> None:
        self._connection = connection
        self._connection.decoders = {}
        with self._connection.cursor() as cursor:
            if sql_mode is not None:
                cursor.execute(f"SET sql_mode = '{sql_mode}'")
            cursor.execute("SELECT VERSION()")
            if "MariaDB" in str(cursor.fetchone()):
                # MySQL rounds fractions of a second, MariaDB cuts them unless told so
                cursor.execute("SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')")

    def run(self, sql: str) -> Answer:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError as error:
                return Answer(error=SAME_ERRORS.get(error.args[0], error.args[0]), message=str(error.args[-1]))
            if cursor.description is None:
                return Answer(affected=cursor.rowcount, last_insert_id=cursor.lastrowid or 0)
            rows = [tuple(_cell(value) for value in row) for row in cursor.fetchall()]
            floats = frozenset(
                position
                for position, column in enumerate(cursor.description)
                if column[1] in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE)
            )
            return Answer(rows, floats=floats)


def _cell(value: Any) -> Cell:
    if isinstance(value, str):
        return value.encode()
    assert value is None or isinstance(value, bytes), type(value)
    return value


def differences(statement: Generated, expected: Answer, found: Answer) -> str:
    """What is not the same, for people to read; empty if nothing."""
    if expected.error or found.error:
        if expected.error == found.error or _is_known_difference(expected, found):
            return ""
        return f"error {expected.error} {expected.message!r}, found {found.error} {found.message!r}"
    if (expected.rows is None) != (found.rows is None):
        return f"rows {expected.rows}, found {found.rows}"
    if expected.rows is None or found.rows is None:
        if statement.is_definition:  # how many rows an ALTER had to copy is up to the server
            return ""
        counts = (expected.affected, expected.last_insert_id)
        others = (found.affected, found.last_insert_id)
        return "" if counts == others else f"(affected, last_insert_id) {counts}, found {others}"
    left = _comparable(expected.rows, expected.floats, statement.approximate)
    right = _comparable(found.rows, expected.floats, statement.approximate)
    if statement.ordered:
        same = _same_rows(left, right)
    else:
        same = Counter(left) == Counter(right) or _same_rows(sorted(left, key=repr), sorted(right, key=repr))
    if same:
        return ""
    if len(left) > 12:
        missing, extra = Counter(left) - Counter(right), Counter(right) - Counter(left)
        return f"{len(left)} rows, found {len(right)}; missing {list(missing)[:5]}, extra {list(extra)[:5]}"
    return f"rows\n    {left}\n  found\n    {right}"


def _is_known_difference(expected: Answer, found: Answer) -> bool:
    """'' for a DOUBLE: MySQL says truncated, MariaDB incorrect. NULL in what becomes NOT NULL: 1138 in MySQL."""
    if (expected.error, found.error) == (1265, 1138):
        return True
    return (expected.error, found.error) == (1366, 1265) and "double value" in expected.message


Comparable = tuple[bytes | float | None, ...]


def _comparable(rows: list[tuple[Cell, ...]], floats: frozenset[int], approximate: bool) -> list[Comparable]:
    if not floats:
        return list(rows)
    digits = 9 if approximate else 15
    return [
        tuple(
            float(f"{float(cell):.{digits}g}") if position in floats and cell is not None else cell
            for position, cell in enumerate(row)
        )
        for row in rows
    ]


def _same_rows(left: list[Comparable], right: list[Comparable]) -> bool:
    return len(left) == len(right) and all(map(_same_row, left, right))


def _same_row(left: Comparable, right: Comparable) -> bool:
    return len(left) == len(right) and all(map(_same_cell, left, right))


def _same_cell(left: bytes | float | None, right: bytes | float | None) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return isclose(left, right, rel_tol=1e-9)
    return left == right


def compare(statements: Iterable[Generated], expected: Peer, found: Peer) -> list[str]:
    """Run everything on both; what differed, with the statement, in order."""
    problems = []
    for statement in statements:
        right = expected.run(statement.sql)
        try:
            difference = differences(statement, right, found.run(statement.sql))
        except Exception as error:
            difference = f"an answer, found {''.join(traceback.format_exception(error, limit=-4))}"
        if difference:
            problems.append(f"{statement.sql}\n  expected {difference}")
    return problems
