"""Evaluates the same expressions in MariaDB and here, and tells where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from dataflow.errors import MillraceError
from dataflow.expressions.compile import compile_predicate, compile_scalar
from dataflow.expressions.expression import Call, Expression, Literal, walk
from dataflow.values.conversion import Domain, convert
from dataflow.values.types import BLOBS, INTEGERS, NUMBERS, REALS, STRINGS, TEMPORALS, Kind, SqlType, Value
from tests.mariadb import MariaDB
from tests.sent_values import sent_bytes
from tests.unit.dataflow.random_expressions import COLLATION, COLUMNS, ROWS, Sample, sql_literal

ENCODERS = {key: value for key, value in pymysql.converters.conversions.items() if isinstance(key, type)}
BIT_OPERATORS = frozenset({"&", "|", "^", "~", "<<", ">>"})
COMPARED = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "between", "not between", "in", "not in", "nullif"})
Answers = list[bytes | None] | int
"""One text for each row, or the error's code."""


@dataclass(frozen=True)
class Difference:
    sql: str
    theirs: Answers
    ours: Answers


def connect(mariadb: MariaDB) -> Any:
    """A connection on which results stay text, with the table `t` of ROWS in its database."""
    connection = mariadb.connect(mariadb.fresh_database(), conv=ENCODERS)
    cursor = connection.cursor()
    cursor.execute(f"SET NAMES utf8mb4 COLLATE {COLLATION}")
    cursor.execute("SET sql_mode = 'TIME_ROUND_FRACTIONAL'")
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(f'`{name}` {sql}' for name, sql, _ in COLUMNS)})")
    for number, row in enumerate(ROWS):
        values = ", ".join(sql_literal(value, type_) for value, (_, _, type_) in zip(row, COLUMNS))
        cursor.execute(f"INSERT INTO t VALUES ({number}, {values})")
    return connection


def shown(value: Value, type_: SqlType) -> bytes | None:
    """A value as the text protocol sends it."""
    if value is None:
        return None
    found = sent_bytes(value, type_)
    return b"0" if found == b"-0" else found  # MySQL shows the sign of zero, MariaDB does not


def ours(sample: Sample) -> Answers:
    try:
        function = compile_scalar(sample.ours)
        answers = [shown(function(row, ()), sample.ours.type) for row in ROWS]
    except MillraceError as error:
        return error.condition.code
    if sample.ours.type.kind is Kind.DECIMAL:
        return answers  # what is rounded to 0 is not yet so in a condition
    predicate = compile_predicate(sample.ours)
    numbers = [convert(function(row, ()), sample.ours.type, Domain.NUMBER) for row in ROWS]
    assert [predicate(row, ()) for row in ROWS] == [bool(number) for number in numbers], sample.sql
    return answers


def theirs(cursor: Any, samples: Sequence[Sample]) -> Iterator[Answers]:
    """All in one query, unless one of them is an error."""
    try:
        cursor.execute(f"SELECT {', '.join(sample.sql for sample in samples)} FROM t ORDER BY id".replace("%", "%%"), ())
    except pymysql.MySQLError as error:
        if len(samples) == 1:
            yield int(error.args[0])
            return
        half = len(samples) // 2
        yield from theirs(cursor, samples[:half])
        yield from theirs(cursor, samples[half:])
        return
    rows = cursor.fetchall()
    for position in range(len(samples)):
        yield [None if row[position] is None else _bytes(row[position]) for row in rows]


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8")


def differences(cursor: Any, samples: Sequence[Sample]) -> list[Difference]:
    found = []
    for start in range(0, len(samples), 64):
        batch = samples[start : start + 64]
        for sample, expected in zip(batch, theirs(cursor, batch)):
            actual = ours(sample)
            if not agree(expected, actual, sample.ours) and known_difference(sample.ours) is None:
                found.append(Difference(sample.sql, expected, actual))
    return found


def agree(theirs: Answers, ours: Answers, expression: Expression) -> bool:
    """Doubles may differ in the last digit, and in how many of them MariaDB shows."""
    if theirs == ours:
        return True
    if theirs == 1690 and isinstance(expression, Call) and any(isinstance(part, Call) for part in expression.arguments):
        return True  # an operand that overflows is not computed here if the other one is NULL
    if isinstance(theirs, int) or isinstance(ours, int):
        return False
    if expression.type.kind is not Kind.DOUBLE:
        return False
    return all(
        one == two or (one is not None and two is not None and math.isclose(float(one), float(two), rel_tol=1e-13))
        for one, two in zip(theirs, ours)
    )


def known_difference(expression: Expression) -> str | None:
    """Why MySQL's answer, which is ours, is not MariaDB's."""
    for node in walk(expression):
        if isinstance(node, Call):
            if node is not expression and any(isinstance(part, Call) and part.function == "row" for part in node.arguments):
                return "MariaDB thinks that a comparison of rows is never NULL"
            if node is not expression and (reason := _nested_difference(node)) is not None:
                return reason
            if node.function in COMPARED and isinstance(node.arguments[0], Call) and node.arguments[0].function == "row":
                nodes = [Call(node.function, pair, node.type) for pair in zip(*(row.arguments for row in node.arguments))]  # type: ignore[union-attr]
            else:
                nodes = [node]
            reason = next(filter(None, map(_known_difference, nodes)), None)
            if reason is not None:
                return reason
    return None


def _nested_difference(node: Call) -> str | None:
    """Reasons that matter only where the value is used further."""
    if node.function == "cast" and node.type.kind not in NUMBERS:
        return "MariaDB computes with a fixed number of decimals, and with zero dates for NULL"
    if node.function in ("greatest", "least") and node.type.kind not in NUMBERS:
        return "MariaDB compares the arguments as numbers if a number is wanted"
    kinds = {argument.type.kind for argument in node.arguments}
    if node.function in ("case", "if", "ifnull", "coalesce", "nullif") and kinds & (TEMPORALS | STRINGS | BLOBS):
        return "MariaDB evaluates the chosen branch in the type that the context wants"
    return None


def _known_difference(node: Call) -> str | None:
    kinds = {argument.type.kind for argument in node.arguments} - {Kind.NULL}
    texts = kinds & (STRINGS | BLOBS)
    if node.function in COMPARED and Kind.YEAR in kinds:
        return "MariaDB converts what a YEAR is compared with to a year"
    if node.function in COMPARED and kinds & TEMPORALS and kinds & NUMBERS:
        return "a number that is no date compares as a number in MySQL, as the zero date in MariaDB"
    if node.function == "cast" and node.type.kind in TEMPORALS and kinds & NUMBERS:
        return "MariaDB takes a YEAR for a date, and clips times differently"
    if node.function == "cast" and node.type.kind in INTEGERS and any(argument.type.scale for argument in node.arguments):
        return "MySQL rounds the fraction of a DATETIME that becomes an integer"
    if node.function == "cast" and node.type.unsigned and kinds & TEMPORALS:
        return "MariaDB makes 0 of a negative time"
    if node.function == "cast" and node.type.kind in TEMPORALS and isinstance(node.arguments[0], Literal):
        return "MariaDB compares a constant cast that is NULL as the zero date"
    if node.function == "/" and any(argument.type.scale for argument in node.arguments if argument.type.kind in TEMPORALS):
        return "MariaDB divides by a time with six fractional digits"
    if node.function in COMPARED and texts and Kind.DECIMAL in kinds:
        return "MariaDB compares doubles with a fixed number of decimals"
    if node.function == "negate" and node.arguments[0].type.unsigned:
        return "MariaDB makes a DECIMAL of it, where MySQL has error 1690"
    if node.function == "-" and kinds <= INTEGERS:
        bounds = {argument.type.kind for argument in node.arguments[1:]}
        if Kind.BIGINT in bounds:
            return "MariaDB wraps 0 - (-9223372036854775808) around"
    if node.function == "%" and Kind.DECIMAL in kinds:
        return "MariaDB keeps the sign of a DECIMAL remainder of zero"
    if node.function in ("between", "not between") and texts and kinds - texts:
        return "MariaDB compares the pairs, each by its own types"
    if node.function in BIT_OPERATORS:
        fractions = any(argument.type.scale for argument in node.arguments if argument.type.kind in TEMPORALS)
        if texts - {Kind.ENUM, Kind.SET} or kinds & REALS or fractions:
            return "MariaDB rounds text and doubles half away from zero; MySQL takes an integer prefix, or rounds half to even"
    if node.function in ("case", "if", "ifnull", "coalesce") and node.type.kind is Kind.DOUBLE and Kind.DECIMAL in kinds:
        return "MariaDB shows as many digits of a double as the decimals beside it have"
    if node.function in ("<<", ">>") and Kind.DECIMAL in kinds:
        return "MariaDB clips the number of bits to shift by differently"
    if node.function in ("greatest", "least") and (
        (texts and kinds - texts) or (kinds & TEMPORALS and not kinds <= TEMPORALS) or kinds & {Kind.ENUM, Kind.SET}
    ):
        return "MySQL 8 compares a mix of text and numbers as text, MariaDB as doubles"
    if node.function == "cast" and node.type.kind is Kind.BINARY:
        return "MariaDB counts characters in CAST AS BINARY(n)"
    unsigned = any(argument.type.unsigned for argument in node.arguments)
    if node.function in ("+", "-", "*", "div", "%") and kinds & TEMPORALS and unsigned:
        return "a date is a signed DECIMAL in MariaDB, so it never meets unsigned overflow"
    if node.function in ("+", "-", "*", "div", "%", "negate") and Kind.YEAR in kinds:
        return "as with dates"
    return None
