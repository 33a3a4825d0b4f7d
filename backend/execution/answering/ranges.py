"""Conditions on parameters that are a range of one column, and what of a view has to be read for them.

`k = ? AND id < ? ORDER BY id DESC LIMIT 25` needs 25 rows of a key, not all of them, if the
view keeps the rows of each key in the order of `id`. Recognised are <, <=, >, >=, BETWEEN and
LIKE with a constant beginning, on one column and against anything that reads no row, where the
comparison is one of the column's own keys (`lookup_value`); a value that turns out to be of
another kind gives no range, and the caller reads all rows of the key. Of `(a, b) < (?, ?)` and
`a < ? OR a = ? AND b < ?`, which page through an order of several columns, the range of `a` is taken.

Every row that fulfils the filter is in the range. The reverse only holds where it is `exact`; the
filter is evaluated on the rows anyway, and more are asked for where too few of a LIMIT pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backend.execution.evaluation.access import terms
from backend.execution.evaluation.lookup_value import UNUSABLE, Lookup, lookup_value
from backend.views.view_range import Range
from controller.sql.plan import Query
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of, walk
from dataflow.functions import call, is_deterministic
from dataflow.functions.comparisons import is_row
from dataflow.functions.patterns import like_parts
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Columns
from dataflow.values.collation.keys import prefix_key
from dataflow.values.ordering import Bound, bound_keys
from dataflow.values.types import STRINGS, TEXTS, Kind, Row, SqlType, Value

Scalar = Callable[[Row, Sequence[Value]], Value]

SPARE_ROWS = 32
"""What is read beyond a LIMIT where some rows of the range may not pass the filter."""
AFTER_NULLS: Bound = ((None,), True)
NOTHING = Range(limit=0)
ALL_FROM_HERE_ON = 1 << 62
"""OFFSET needs a LIMIT in MySQL: those who want none write the largest number there is."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column operator constant`, for one of the constants; LIKE stands for its constant beginning."""

    column: int
    operator: str
    constants: tuple[Scalar, ...]
    lookup: Lookup
    escape: str = ""


@dataclass(frozen=True, slots=True)
class QueryRange:
    """What a query needs of its ordered view. `ends`: its order is that of ORDER BY, so LIMIT can be applied there.

    `exact`: all rows in the range fulfil the filter.
    """

    order: Columns
    types: tuple[SqlType, ...]
    comparisons: tuple[Comparison, ...]
    ends: bool
    exact: bool
    descending: bool
    limit: Scalar | None
    offset: Scalar | None

    def bind(self, parameters: Sequence[Value]) -> Range | None:
        """The range for these parameters; None if it is no range of the column's own keys."""
        low: Bound | None = AFTER_NULLS if self.comparisons else None
        high: Bound | None = None
        lower: Bound | None
        upper: Bound | None
        for each in self.comparisons:
            values: list[Any] = [each.lookup(constant((), parameters)) for constant in each.constants]
            if UNUSABLE in values:
                return None
            values = [value for value in values if value is not None]
            if not values:
                return NOTHING  # nothing compares with NULL
            if each.operator == "like":
                found = prefix_range(values[0], self.types[0], each.escape)
                if found is None:
                    continue
                lower, upper = found
            else:
                keys = [bound_keys((value,), self.types[:1]) for value in values]
                lower = (min(keys), each.operator == ">") if each.operator[0] == ">" else None
                upper = (max(keys), each.operator == "<=") if each.operator[0] == "<" else None
            if lower is not None:
                low = lower if low is None or low is AFTER_NULLS else max(low, lower)
            if upper is not None:
                high = upper if high is None else min(high, upper)
        limit = self.wanted(parameters)
        if limit and not self.exact:
            limit += SPARE_ROWS
        return Range(low, high, limit, self.descending)

    def wanted(self, parameters: Sequence[Value]) -> int | None:
        """How many rows in the order of the range are enough; None if it takes all."""
        if not self.ends or self.limit is None:
            return None
        limit = self.limit((), parameters)
        offset = 0 if self.offset is None else self.offset((), parameters)
        if not isinstance(limit, int) or not isinstance(offset, int) or limit >= ALL_FROM_HERE_ON:
            return None
        return limit + offset


def range_of(query: Query, key: Columns, filter_: Expression | None) -> QueryRange | None:
    """The range that the filter of a query's rows and its order make; None if there is none worth an order."""
    if query.default is not None or query.windows:
        return None
    conditions = conjuncts(filter_)
    found: dict[int, list[Comparison]] = {}
    exact: dict[int, int] = {}
    for condition in conditions:
        comparisons = list(_comparisons(condition))
        if not comparisons or len({each.column for each in comparisons}) != 1:
            continue
        found.setdefault(comparisons[0].column, []).extend(comparisons)
        if len(comparisons) == _expected(condition):
            exact[comparisons[0].column] = exact.get(comparisons[0].column, 0) + 1
    order, descending = order_of(query, key)
    plain = query.limit is not None and not query.distinct and not query.count_found_rows
    if not found:
        if not plain or not order:
            return None
        chosen, compared, ends, is_exact = order, tuple[Comparison, ...](), True, not conditions
    else:
        column = order[0] if order and order[0] in found else max(found, key=lambda each: len(found[each]))
        compared = tuple(found[column])
        sorts = not query.order_by or bool(order and order[0] == column)
        ends = plain and sorts
        is_exact = exact.get(column, 0) == len(conditions)
        chosen = order if ends and query.order_by else (column,)
    return QueryRange(
        chosen,
        tuple(query.node.types[each] for each in chosen),
        compared,
        ends,
        is_exact,
        ends and descending,
        None if query.limit is None else compile_scalar(query.limit),
        None if query.offset is None else compile_scalar(query.offset),
    )


def order_of(query: Query, key: Columns) -> tuple[Columns, bool]:
    """The columns of ORDER BY, all in one direction; empty if they are anything else.

    What all rows of a key have in common does not count.
    """
    order: list[int] = []
    directions = set()
    for item in query.order_by:
        column = item.expression
        if not isinstance(column, Column) or not is_orderable(column.type):
            return (), False
        if column.index not in key and column.index not in order:
            order.append(column.index)
            directions.add(item.descending)
    return (tuple(order), directions.pop()) if len(directions) == 1 else ((), False)


def is_orderable(kind: SqlType) -> bool:
    """Whether ordered rows are in the order that ORDER BY gives them."""
    if kind.kind in (Kind.SET, Kind.JSON, Kind.NULL):
        return False
    return kind.kind not in STRINGS or kind.collation is not None


# --- what is a range


def _comparisons(condition: Expression) -> list[Comparison]:
    found: list[Comparison]
    if not is_deterministic(condition):
        return []
    match condition:
        case Call("like", (Column() as column, pattern, *escape)) if column.type.kind in TEXTS:
            known = lookup_value(column, pattern, equality=False)
            if known is None or columns_of(pattern) or not all(isinstance(each, Literal) for each in escape):
                return []
            character = escape[0].value if escape and isinstance(escape[0], Literal) else "\\"
            if not isinstance(character, str):
                return []
            return [Comparison(column.index, "like", (compile_scalar(pattern),), known, character)]
        case Call("<" | "<=" | ">" | ">=" as operator, (Call("row", left), Call("row", right))):
            return _comparisons(call(operator[0] + "=", left[0], right[0]))
        case Call("or", _):
            found = _paging(condition)
        case _:
            found = [
                Comparison(each.column, each.operator, each.constants, each.lookup)
                for each in terms(condition)
                if each.operator in ("<", "<=", ">", ">=")
            ]
    columns = {each.index: each.type for each in walk(condition) if isinstance(each, Column)}
    return [each for each in found if is_orderable(columns[each.column])]


def _paging(condition: Call) -> list[Comparison]:
    """The bound that all alternatives have in common: on one side of one column, each with a constant of its own."""
    alternatives = [
        [each for each in terms(disjunct) if each.operator in ("<", "<=", ">", ">=", "=")]
        for disjunct in condition.arguments
    ]
    first = next((each for found in alternatives for each in found if each.operator != "="), None)
    if first is None:
        return []
    side = (first.operator[0], first.operator[0] + "=", "=")
    bounds = [
        next((each for each in found if each.column == first.column and each.operator in side), None)
        for found in alternatives
    ]
    constants = tuple(constant for each in bounds if each is not None for constant in each.constants)
    if None in bounds or any(each is not None and each.lookup is not first.lookup for each in bounds):
        return []
    return [Comparison(first.column, first.operator[0] + "=", constants, first.lookup)]


def _expected(condition: Expression) -> int:
    """How many comparisons say all that the condition says; 0 if none do."""
    match condition:
        case Call("between", _):
            return 2
        case Call("<" | "<=" | ">" | ">=", (left, _)) if not is_row(left):
            return 1
    return 0


def prefix_range(pattern: str, kind: SqlType, escape: str) -> tuple[Bound, Bound | None] | None:
    """Where the texts are that begin as the pattern does; None if it begins with a wildcard.

    LIKE compares character by character, and the key of a text begins with those of its first
    characters (`prefix_key`).
    """
    parts = like_parts(pattern, escape)
    prefix = (parts[0] or "") if parts else ""
    if not prefix:
        return None
    if kind.collation in ("utf8mb4_0900_bin", "binary"):
        return ((prefix,), False), _bound_of(_next_text(prefix))
    assert kind.collation is not None
    start = prefix_key(kind.collation)(prefix)
    return (((start,), False), _bound_of(_next_bytes(start))) if start else None


def _bound_of(key: Any) -> Bound | None:
    return None if not key else ((key,), False)


def _next_bytes(prefix: bytes) -> bytes:
    """The first bytes after all that begin with `prefix`; empty if there are none."""
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes((cut[-1] + 1,)) if cut else b""


def _next_text(prefix: str) -> str:
    cut = prefix.rstrip(chr(0x10FFFF))
    if not cut:
        return ""
    point = ord(cut[-1]) + 1
    return cut[:-1] + chr(0xE000 if 0xD800 <= point <= 0xDFFF else point)
