"""Expressions over columns: what has an exact form in 64 bits by numpy, what reads one column once for each distinct value.

| form       | what                                                                                                           |
|------------|----------------------------------------------------------------------------------------------------------------|
| arithmetic | + - * of integers and decimals                                                                                 |
| comparison | of integers and decimals, of DATE and DATETIME with each other and with constants; BETWEEN and IN of constants |
| logic      | AND, OR, NOT, IS [NOT] NULL                                                                                    |
| by value   | any expression that reads one column: the code that rows have, run for each distinct value of some rows        |

`compiled` gives None where there is none of these. What rows would answer with a warning or an error is `GaveUp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from dataflow.columns.vector import (
    Array,
    GaveUp,
    NumberVector,
    Vector,
    distinct,
    filtered,
    in_64_bits,
    is_exact,
    taken,
    unscaled,
    values_of,
    vector_of,
)
from dataflow.errors import MillraceError
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of, walk
from dataflow.expressions.notices import overheard
from dataflow.expressions.rewriting import moved
from dataflow.functions import is_deterministic
from dataflow.values.comparison import comparable
from dataflow.values.types import BLOBS, INTEGERS, REALS, STRINGS, Kind, Row, SqlType, Value

COMPUTED_BYTES_MAX = 4096
"""The length of a computed text: some thousand rows have one each at a time."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Some rows: the columns that are read of them, by position."""

    count: int
    vectors: Mapping[int, Vector]

    def filtered(self, mask: Array) -> Columns:
        return Columns(int(np.count_nonzero(mask)), {place: filtered(each, mask) for place, each in self.vectors.items()})


Evaluate = Callable[[Columns], Vector]
_Numeric = Callable[[Columns], NumberVector]

_COMPARISONS = {
    "=": np.equal, "<>": np.not_equal, "!=": np.not_equal,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_DATES = frozenset({Kind.DATE, Kind.DATETIME})


def compiled(expression: Expression) -> Evaluate | None:
    """What computes the values of an expression without parameters; None if it has no exact form by column."""
    if isinstance(expression, Column):
        index = expression.index
        return lambda columns: columns.vectors[index]
    return _native(expression) or _by_value(expression)


def condition(expression: Expression) -> Callable[[Columns], Array] | None:
    """Which rows an expression is true for."""
    found = _truth(expression)
    if found is None:
        return None

    def mask(columns: Columns) -> Array:
        numbers = found(columns)
        true = numbers.values != 0
        if numbers.missing is not None:
            true &= ~numbers.missing
        return np.broadcast_to(true, (columns.count,)) if len(true) != columns.count else true

    return mask


def _truth(expression: Expression) -> _Numeric | None:
    if expression.type.kind not in INTEGERS:
        return None
    return compiled(expression)


def _native(expression: Expression) -> _Numeric | None:
    if isinstance(expression, Literal):
        return _constant(expression)
    if not isinstance(expression, Call):
        return None
    name, arguments = expression.function, expression.arguments
    if name in ("+", "-", "*"):
        return _arithmetic(name, arguments, expression.type)
    if name in _COMPARISONS:
        return _comparison(name, *arguments)
    if name in ("between", "not between"):
        return _between(arguments, name == "not between")
    if name in ("in", "not in"):
        return _among(arguments, name == "not in")
    if name in ("and", "&&", "or"):
        return _logic(arguments, name == "or")
    if name in ("not", "!"):
        inner = _truth(arguments[0])
        return None if inner is None else lambda columns: _negated(inner(columns))
    if name in ("is null", "isnull", "is not null") and isinstance(arguments[0], Column):
        return _is_null(arguments[0].index, name == "is not null")
    return None


# --- numbers


def _constant(literal: Literal) -> _Numeric | None:
    value = literal.value
    if literal.type.kind not in INTEGERS and literal.type.kind is not Kind.DECIMAL:
        return None  # a moment is an integer, too
    if not isinstance(value, int | Decimal):
        return None
    try:
        number = unscaled(value, _scale(literal))
        in_64_bits(number)
    except (GaveUp, ArithmeticError):
        return None
    found = NumberVector(np.array([number], np.int64))
    return lambda columns: found


def _scale(expression: Expression) -> int:
    """The digits behind the point."""
    if isinstance(expression, Literal):
        exponent = expression.value.as_tuple().exponent if isinstance(expression.value, Decimal) else 0
        return max(0, -exponent) if isinstance(exponent, int) else 0
    return expression.type.scale if expression.type.kind is Kind.DECIMAL else 0


def _exact(expression: Expression) -> _Numeric | None:
    """An expression whose values are integers or decimals."""
    if isinstance(expression, Literal):
        return _constant(expression)
    if not is_exact(expression.type) and not (isinstance(expression, Call) and expression.type.kind is Kind.DECIMAL):
        return None
    if isinstance(expression, Column):
        return compiled(expression)
    return _native(expression)


def _aligned(numbers: NumberVector, digits: int) -> Array:
    if not digits or not len(numbers):
        return numbers.values
    factor = 10**digits
    in_64_bits(int(numbers.values.min()) * factor, int(numbers.values.max()) * factor)
    found: Array = numbers.values * factor
    return found


def _either(left: Array | None, right: Array | None) -> Array | None:
    return right if left is None else left if right is None else left | right


def _arithmetic(name: str, arguments: Sequence[Expression], result: SqlType) -> _Numeric | None:
    left, right = (_exact(each) for each in arguments)
    scales = [_scale(each) for each in arguments]
    scale = sum(scales) if name == "*" else max(scales)
    if left is None or right is None or (result.scale if result.kind is Kind.DECIMAL else 0) != scale:
        return None
    if result.kind is not Kind.DECIMAL and result.kind not in INTEGERS:
        return None
    shifts = (0, 0) if name == "*" else (scale - scales[0], scale - scales[1])

    def evaluate(columns: Columns) -> NumberVector:
        one, two = left(columns), right(columns)
        first, second = _aligned(one, shifts[0]), _aligned(two, shifts[1])
        missing = _either(one.missing, two.missing)
        if not len(first) or not len(second):
            return NumberVector(np.zeros(0, np.int64))
        a, b, c, d = int(first.min()), int(first.max()), int(second.min()), int(second.max())
        ends = {"+": (a + c, b + d), "-": (a - d, b - c), "*": (a * c, a * d, b * c, b * d)}[name]
        in_64_bits(*ends)
        made = first + second if name == "+" else first - second if name == "-" else first * second
        if missing is not None:
            missing = np.broadcast_to(missing, made.shape)
            made[missing] = 0
        if result.unsigned and min(ends) < 0 and (made < 0).any():
            raise GaveUp("a negative number that is unsigned")
        return NumberVector(made, missing)

    return evaluate


# --- comparisons


def _sides(left: Expression, right: Expression) -> tuple[_Numeric, _Numeric, int, int] | None:
    """Both sides as numbers that compare as SQL compares the values, and the digits that each is to be given."""
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Column) and side.type.kind in _DATES:
            pair = compiled(side), _date(other, side)
            if pair[1] is None:
                return None
            return (*(pair if side is left else pair[::-1]), 0, 0)  # type: ignore[return-value]
    one, two = _exact(left), _exact(right)
    if one is None or two is None:
        return None
    scales = _scale(left), _scale(right)
    return one, two, max(scales) - scales[0], max(scales) - scales[1]


def _date(expression: Expression, column: Column) -> Evaluate | None:
    if isinstance(expression, Column):
        return compiled(expression) if expression.type.kind in _DATES else None
    if not isinstance(expression, Literal) or expression.value is None:
        return None
    with overheard() as heard:
        try:
            value = comparable(expression.value, expression.type, column.type)
        except MillraceError:
            return None
    if heard or type(value) is not int:
        return None
    found = NumberVector(np.array([value], np.int64))
    return lambda columns: found


def _comparison(name: str, left: Expression, right: Expression) -> _Numeric | None:
    sides = _sides(left, right)
    if sides is None:
        return None
    one, two, more_one, more_two = sides
    compare = _COMPARISONS[name]

    def evaluate(columns: Columns) -> NumberVector:
        first, second = one(columns), two(columns)
        found = compare(_aligned(first, more_one), _aligned(second, more_two))
        return _truths(found, _either(first.missing, second.missing))

    return evaluate


def _between(arguments: Sequence[Expression], negated: bool) -> _Numeric | None:
    value, low, high = arguments
    above, below = _comparison(">=", value, low), _comparison("<=", value, high)
    if above is None or below is None:
        return None
    pair = above, below

    def evaluate(columns: Columns) -> NumberVector:
        found = _combined([each(columns) for each in pair], False)
        return _negated(found) if negated else found

    return evaluate


def _among(arguments: Sequence[Expression], negated: bool) -> _Numeric | None:
    value, constants = arguments[0], arguments[1:]
    inner = _exact(value)
    if inner is None or isinstance(value, Literal) or not all(isinstance(each, Literal) and _constant(each) for each in constants):
        return None
    scale = max(_scale(value), *(_scale(each) for each in constants))
    wanted = [unscaled(each.value, scale) for each in constants if isinstance(each, Literal)]  # type: ignore[arg-type]
    wanted = [each * 10**scale if isinstance(constant.value, int) else each for each, constant in zip(wanted, constants)]  # type: ignore[union-attr]
    more = scale - _scale(value)
    try:
        in_64_bits(*wanted)
    except GaveUp:
        return None
    sought = np.array(wanted, np.int64)

    def evaluate(columns: Columns) -> NumberVector:
        numbers = inner(columns)
        found = np.isin(_aligned(numbers, more), sought)
        return _truths(~found if negated else found, numbers.missing)

    return evaluate


# --- logic: values are true where they are not 0


def _logic(arguments: Sequence[Expression], is_or: bool) -> _Numeric | None:
    parts = [_truth(each) for each in arguments]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    return lambda columns: _combined([each(columns) for each in known], is_or)


def _combined(parts: Sequence[NumberVector], is_or: bool) -> NumberVector:
    """AND: false where one is; OR: true where one is. NULL where that is not so and one is NULL."""
    decided: Array | None = None
    unknown: Array | None = None
    for each in parts:
        found = each.values != 0
        deciding = found if is_or else ~found
        if each.missing is not None:
            deciding = deciding & ~each.missing
            unknown = each.missing if unknown is None else unknown | each.missing
        decided = deciding if decided is None else decided | deciding
    assert decided is not None
    missing = None if unknown is None else unknown & ~decided
    return _truths(decided if is_or else ~decided, missing)


def _negated(numbers: NumberVector) -> NumberVector:
    return _truths(numbers.values == 0, numbers.missing)


def _truths(true: Array, missing: Array | None) -> NumberVector:
    """Numbers as SQL has them for what is true: they may be added up, grouped and ordered."""
    return NumberVector((true if missing is None else true & ~missing).astype(np.int64), missing)


def _is_null(place: int, negated: bool) -> _Numeric:
    def evaluate(columns: Columns) -> NumberVector:
        vector = columns.vectors[place]
        if not isinstance(vector, NumberVector):
            missing = vector.is_null().to_numpy(zero_copy_only=False)
        else:
            missing = np.zeros(len(vector), bool) if vector.missing is None else vector.missing
        return _truths(~missing if negated else missing, None)

    return evaluate


# --- whatever reads one column


def _by_value(expression: Expression) -> Evaluate | None:
    places = columns_of(expression)
    if len(places) != 1 or expression.type.kind in REALS or not is_deterministic(expression):
        return None
    [place] = places
    source = next(each.type for each in walk(expression) if isinstance(each, Column))
    compute = compile_scalar(moved(expression, {place: 0}))
    result = expression.type

    computed = _few_bytes(compute) if result.kind in STRINGS or result.kind in BLOBS else compute

    def evaluate(columns: Columns) -> Vector:
        different, places = distinct(columns.vectors[place])
        with overheard() as heard:
            try:
                found = [computed((value,), ()) for value in values_of(different, source)]
            except MillraceError as error:
                raise GaveUp(str(error)) from None
        if heard:
            raise GaveUp(heard[0][0].name)
        return taken(vector_of(found, result), places)

    return evaluate


def _few_bytes(compute: Callable[[Row, Row], Value]) -> Callable[[Row, Row], Value]:
    """Each row has a text of its own in the end, and nobody counts their memory."""

    def few(row: Row, parameters: Row) -> Value:
        value = compute(row, parameters)
        if isinstance(value, str | bytes) and len(value) > COMPUTED_BYTES_MAX:
            raise GaveUp("a long text")
        return value

    return few
