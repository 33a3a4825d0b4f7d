"""When two answers are the same.

Rows are compared as bags, and where ORDER BY names columns of the result, the sequence of those, too. After a LIMIT
that leaves out rows only what ORDER BY decides is compared, and how many there are.
Approximate numbers are the same to nine digits, the relevance of MATCH, which has single precision, to six.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from math import isclose
from typing import Any

import sqlglot
from sqlglot import expressions

from tests.compatibility.mariadb_test.lines import Answer, Row
from tests.differential.comparison import SAME_ERRORS

FLOAT_DIGITS, RELEVANCE_DIGITS = 9, 6


class Kind(StrEnum):
    SAME = "same"
    ROWS = "other rows"
    STORED = "stored"
    COUNTS = "counts"
    WARNINGS = "warnings"
    CODE = "other error"
    REFUSED_HERE = "refused by millrace"
    REFUSED_THERE = "refused by MariaDB"
    TIME_OUT = "no answer"
    LIMIT = "limit"
    """Differs because of a limit of millrace's that is written down."""
    ABSENT = "absent"
    """About something that millrace does not have at all: stored programs, spatial types."""
    APART = "apart"
    FOLLOWED = "followed"


DEFINITION = re.compile(r"\s*(ALTER|CREATE|DROP|RENAME|TRUNCATE|SET|USE|FLUSH|LOCK|UNLOCK|ANALYZE|GRANT|REVOKE|DEALLOCATE|PREPARE)\b", re.IGNORECASE)
_FLOAT = re.compile(rb"-?\d+(\.\d*)?([eE][-+]?\d+)?\Z")


def judge(statement: str, expected: Answer, found: Answer, hidden: Sequence[int]) -> Kind:
    if expected.timed_out or found.timed_out:
        return Kind.SAME if expected.timed_out and found.timed_out else Kind.TIME_OUT
    if expected.code or found.code:
        if not found.code:
            return Kind.REFUSED_THERE
        if not expected.code:
            return Kind.REFUSED_HERE
        same = SAME_ERRORS.get(expected.code, expected.code) == SAME_ERRORS.get(found.code, found.code)
        return Kind.SAME if same else Kind.CODE
    kind = _judge_one(statement, expected, found, hidden)
    if kind is not Kind.SAME or (expected.further is None and found.further is None):
        return kind
    if expected.further is None or found.further is None:
        return Kind.ROWS
    return judge(statement, expected.further, found.further, hidden)


def _judge_one(statement: str, expected: Answer, found: Answer, hidden: Sequence[int]) -> Kind:
    if (expected.rows is None) != (found.rows is None):
        return Kind.ROWS
    if expected.rows is None or found.rows is None:
        if DEFINITION.match(statement):  # how many rows an ALTER had to copy is up to the server
            return Kind.SAME
        if (expected.affected, expected.insert_id) != (found.affected, found.insert_id):
            return Kind.COUNTS
    elif not same_rows(statement, expected, found, hidden):
        return Kind.ROWS
    return Kind.SAME if expected.warnings == found.warnings or DEFINITION.match(statement) else Kind.WARNINGS


def same_rows(statement: str, expected: Answer, found: Answer, hidden: Sequence[int]) -> bool:
    assert expected.rows is not None and found.rows is not None
    if len(expected.columns) != len(found.columns) or len(expected.rows) != len(found.rows):
        return False
    floats = expected.floats | found.floats
    digits = RELEVANCE_DIGITS if re.search(r"\bAGAINST\b", statement, re.IGNORECASE) else FLOAT_DIGITS
    left, right = ([_shown(row, hidden, floats, digits) for row in answer.rows or ()] for answer in (expected, found))
    if left == right:
        return True
    keys, limited = _order(statement, expected.columns)
    if limited:
        return not keys or _sequences_match(left, right, keys)
    if Counter(left) != Counter(right) and not _match(sorted(left, key=repr), sorted(right, key=repr), 10.0 ** (1 - digits)):
        return False
    return not keys or _sequences_match(left, right, keys)


Shown = tuple[bytes | float | None, ...]


def _shown(row: Row, hidden: Sequence[int], floats: frozenset[int], digits: int) -> Shown:
    return tuple(
        None if index in hidden else float(f"{float(cell):.{digits}g}") if index in floats and cell is not None and _FLOAT.match(cell) else cell
        for index, cell in enumerate(row)
    )


def _sequences_match(left: list[Shown], right: list[Shown], keys: list[int]) -> bool:
    """Texts that differ in case or in spaces at their end may be peers, in any order."""
    first, second = ([tuple(folded(row[key]) for key in keys) for row in rows] for rows in (left, right))
    return _match(first, second)


def folded(cell: bytes | float | None) -> bytes | float | None:
    if not isinstance(cell, bytes):
        return cell
    plain = unicodedata.normalize("NFKD", cell.decode("utf-8", "surrogateescape").casefold())
    return "".join(each for each in plain if not unicodedata.combining(each)).rstrip(" ").encode("utf-8", "surrogatepass")


def leaves_open(statement: str, expected: Answer, found: Answer) -> bool:
    """Whether both answers are among those that the statement allows: which of several equal texts a group shows, the order within
    lists, the rows that a LIMIT without an order leaves."""
    try:
        tree = sqlglot.parse_one(statement, dialect="mysql")
    except Exception:
        tree = None
    if tree is not None and any(
        isinstance(limit.parent, expressions.Query) and not limit.parent.args.get("order") for limit in tree.find_all(expressions.Limit)
    ):
        return True
    if re.search(r"GROUP_CONCAT|ARRAYAGG", statement, re.IGNORECASE):
        return same_rows(statement, _changed(expected, _sorted), _changed(found, _sorted), ())
    if re.search(r"DISTINCT|GROUP\s+BY|UNION|MIN\(|MAX\(", statement, re.IGNORECASE):
        return same_rows(statement, _changed(expected, folded), _changed(found, folded), ())
    return False


def _sorted(cell: bytes | None) -> bytes | None:
    return None if cell is None else bytes(sorted(cell))


def _changed(answer: Answer, change: Callable[[Any], Any]) -> Answer:
    return replace(answer, rows=[tuple(map(change, row)) for row in answer.rows or ()])


def _match(left: list[Shown], right: list[Shown], tolerance: float = 1e-8) -> bool:
    return len(left) == len(right) and all(
        a == b or (isinstance(a, float) and isinstance(b, float) and isclose(a, b, rel_tol=tolerance, abs_tol=1e-12))
        for first, second in zip(left, right)
        for a, b in zip(first, second)
    )


def _order(statement: str, columns: tuple[str, ...]) -> tuple[list[int], bool]:
    """The result's columns that ORDER BY names, as far as they are known; whether there is a LIMIT."""
    if not re.search(r"order\s+by|limit", statement, re.IGNORECASE):
        return [], False
    try:
        tree = sqlglot.parse_one(statement, dialect="mysql")
    except Exception:
        return [], bool(re.search(r"\blimit\b", statement, re.IGNORECASE))
    if not isinstance(tree, expressions.Query):
        return [], False
    keys = []
    order = tree.args.get("order")
    names = [name.lower() for name in columns]
    joined = len(list(tree.find_all(expressions.Table))) > 1
    for each in order.expressions if order is not None else ():
        key = each.this
        name = key.name.lower() if isinstance(key, expressions.Column) else ""
        if isinstance(key, expressions.Literal) and not key.is_string and 0 < int(key.name) <= len(columns):
            keys.append(int(key.name) - 1)
        elif names.count(name) == 1 and not (joined and key.table):
            keys.append(names.index(name))
        else:
            break
    return keys, tree.find(expressions.Limit, expressions.Fetch) is not None
