"""A filter over Arrow columns: by column where that is exact, else row by row.

By column are AND, OR and NOT over comparisons of an integer column with integers, IN lists of them, and IS [NOT] NULL of columns
whose every value Arrow has. All else (texts have collations, dates need no calendar) is left to the compiled predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow.expressions.compile import compile_predicate
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of
from dataflow.values.types import DATES, INTEGERS, Row

Columns = Mapping[int, pa.Array]
_Mask = Callable[[Columns], pa.Array]
_COMPARISONS = {"=": pc.equal, "<>": pc.not_equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INT64 = range(-(2**63), 2**63)


class ColumnFilter:
    """Of an expression without parameters."""

    def __init__(self, expression: Expression) -> None:
        self.columns = columns_of(expression)
        """The columns that it reads."""
        self._mask = _columnar(expression)
        self._predicate = None if self._mask is not None else compile_predicate(expression)

    @property
    def is_columnar(self) -> bool:
        return self._mask is not None

    def mask(self, columns: Columns, rows: Sequence[Row] | None, count: int) -> pa.BooleanArray:
        """Which rows pass, without NULLs; `rows` are the same as whole rows, needed unless it is columnar."""
        if self._mask is not None:
            return pc.fill_null(self._mask(columns), False)
        assert rows is not None and self._predicate is not None
        predicate = self._predicate
        return pa.array(np.fromiter((predicate(row, ()) for row in rows), bool, count))


def _columnar(expression: Expression) -> _Mask | None:
    if not isinstance(expression, Call):
        return None
    function, arguments = expression.function, expression.arguments
    if function in ("and", "or"):
        parts = [_columnar(each) for each in arguments]
        combine = pc.and_kleene if function == "and" else pc.or_kleene
        known = [each for each in parts if each is not None]
        return None if len(known) < len(parts) else lambda columns: reduce(combine, [each(columns) for each in known])
    if function == "not":
        inner = _columnar(arguments[0])
        return None if inner is None else lambda columns: pc.invert(inner(columns))
    if function in ("is null", "is not null") and isinstance(arguments[0], Column) and arguments[0].type.kind not in DATES:
        place, test = arguments[0].index, pc.is_null if function == "is null" else pc.is_valid
        return lambda columns: test(columns[place])
    if function in ("in", "not in"):
        return _among(arguments, function == "not in")
    return _compared(function, arguments)


def _compared(function: str, arguments: Sequence[Expression]) -> _Mask | None:
    if function not in _COMPARISONS or len(arguments) != 2:
        return None
    left, right = arguments
    if isinstance(left, Literal):
        left, right, function = right, left, _TURNED.get(function, function)
    if not _is_integer(left) or not _is_number(right):
        return None
    assert isinstance(left, Column) and isinstance(right, Literal)
    place, compare = left.index, _COMPARISONS[function]
    value = pa.scalar(right.value, pa.int64())
    return lambda columns: compare(_wide(columns[place]), value)


def _among(arguments: Sequence[Expression], negated: bool) -> _Mask | None:
    column, values = arguments[0], arguments[1:]
    if not _is_integer(column) or not all(map(_is_number, values)):
        return None
    assert isinstance(column, Column)
    place = column.index
    wanted = pa.array([each.value for each in values if isinstance(each, Literal)], pa.int64())

    def mask(columns: Columns) -> pa.Array:
        values = _wide(columns[place])
        found = pc.is_in(values, wanted)
        found = pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), found)
        return pc.invert(found) if negated else found

    return mask


def _is_integer(expression: Expression) -> bool:
    """A column of integers that 64 bits with a sign can hold."""
    is_column = isinstance(expression, Column) and expression.type.kind in INTEGERS
    return is_column and not (expression.type.unsigned and expression.type.kind.value == "bigint")


def _is_number(expression: Expression) -> bool:
    return isinstance(expression, Literal) and type(expression.value) is int and expression.type.kind in INTEGERS and expression.value in _INT64


def _wide(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64())
