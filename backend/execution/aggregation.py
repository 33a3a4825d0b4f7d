"""The aggregate functions: what each accumulates over the rows of a group.

An accumulator is given the argument's values one by one, NULLs included, and tells the
result at the end. Exact sums are Decimals and do not depend on the order of the rows; float
ones are added in row order, and variances follow MySQL's recurrence digit by digit.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from math import sqrt
from typing import Any, Protocol

from backend.execution import collection
from controller.sql.plan import Aggregate
from dataflow.comparison import equality_key, extreme_key
from dataflow.conversion import Domain, conversion
from dataflow.errors import Unsupported
from dataflow.expression import Expression, Literal
from dataflow.functions import call
from dataflow.functions.arithmetic import divide_decimal
from dataflow.types import INT, NUMBERS, REALS, Kind, SqlType, Value

EXACT = Context(prec=120, rounding=ROUND_HALF_UP)
BIGINT_MASK = (1 << 64) - 1
_SIGNED = (-(1 << 63), (1 << 63) - 1)


class Accumulator(Protocol):
    def add(self, value: Any) -> None: ...

    def result(self) -> Value: ...


class Count:
    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Value) -> None:
        if value is not None:
            self.count += 1

    def result(self) -> Value:
        return self.count


class CountRows:
    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Value) -> None:
        self.count += 1

    def result(self) -> Value:
        return self.count


class ExactSum:
    """SUM of integers and decimals, or AVG, which divides with so many `added` digits."""

    def __init__(self, type_: SqlType, added: int | None) -> None:
        self.quantum = Decimal(1).scaleb(-type_.scale)
        self.added = added
        self.count = 0
        self.total: int | Decimal = 0

    def add(self, value: Value) -> None:
        if value is not None:
            self.count += 1
            self.total = self.total + value if type(value) is int else EXACT.add(self.total, value)  # type: ignore[arg-type]

    def result(self) -> Value:
        if not self.count:
            return None
        total = Decimal(self.total)
        if self.added is not None:
            total = divide_decimal(total, self.count, self.added) or total
        return EXACT.quantize(total, self.quantum)


class FloatSum:
    def __init__(self, divide: bool) -> None:
        self.divide = divide
        self.count = 0
        self.total = 0.0

    def add(self, value: Value) -> None:
        if value is not None:
            self.count += 1
            self.total += float(value)

    def result(self) -> Value:
        if not self.count:
            return None
        return self.total / self.count if self.divide else self.total


class Extreme:
    """MIN and MAX in the order of `key`; of equal values the first one met stays."""

    def __init__(self, key: Callable[[Value], object], largest: bool) -> None:
        self.key = key
        self.largest = largest
        self.best: Value = None
        self.best_key: object = None

    def add(self, value: Value) -> None:
        if value is None:
            return
        key = self.key(value)
        if self.best is None or (key > self.best_key if self.largest else key < self.best_key):  # type: ignore[operator]
            self.best, self.best_key = value, key

    def result(self) -> Value:
        return self.best


class Bits:
    def __init__(self, function: str, to_integer: Callable[[Value], int]) -> None:
        self.function = function
        self.to_integer = to_integer
        self.bits = BIGINT_MASK if function == "bit_and" else 0

    def add(self, value: Value) -> None:
        if value is None:
            return
        number = self.to_integer(value) & BIGINT_MASK
        if self.function == "bit_and":
            self.bits &= number
        elif self.function == "bit_or":
            self.bits |= number
        else:
            self.bits ^= number

    def result(self) -> Value:
        return self.bits


class Variance:
    def __init__(self, sample: bool, root: bool) -> None:
        self.sample = sample
        self.root = root
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value: Value) -> None:
        if value is None:
            return
        number = float(value)
        self.count += 1
        before = self.mean
        self.mean = before + (number - before) / self.count if self.count > 1 else number
        self.squares += (number - before) * (number - self.mean) if self.count > 1 else 0.0

    def result(self) -> Value:
        divisor = self.count - 1 if self.sample else self.count
        if divisor <= 0:
            return None
        variance = self.squares / divisor
        return sqrt(variance) if self.root else variance


class AnyValue:
    def __init__(self) -> None:
        self.value: Value = None
        self.seen = False

    def add(self, value: Value) -> None:
        if not self.seen:
            self.value, self.seen = value, True

    def result(self) -> Value:
        return self.value


class Distinct:
    """Passes each distinct value on once; `key` says which are the same."""

    def __init__(self, inner: Accumulator, key: Callable[[Value], object]) -> None:
        self.inner = inner
        self.key = key
        self.seen: set[object] = set()

    def add(self, value: Value) -> None:
        if value is None:
            return
        key = self.key(value)
        if key not in self.seen:
            self.seen.add(key)
            self.inner.add(value)

    def result(self) -> Value:
        return self.inner.result()


_VARIANCES = {
    "var_pop": (False, False),
    "var_samp": (True, False),
    "stddev_pop": (False, True),
    "stddev_samp": (True, True),
}


def accumulator(aggregate: Aggregate) -> tuple[tuple[Expression, ...], Callable[[], Accumulator]]:
    """The arguments to evaluate, brought to the domain the function works in, and how to start a group.

    With several arguments, what is added is the tuple of their values.
    """
    argument = aggregate.argument
    function = aggregate.function
    if argument is None:
        return (Literal(1, INT),), CountRows
    if function == "group_concat":
        order = tuple(item.expression for item in aggregate.order_by)
        return (argument, *order), collection.group_concat(aggregate)
    if function == "json_arrayagg":
        return (argument,), collection.json_array(argument.type, aggregate.bytes_max)
    if function == "json_objectagg":
        return (argument, *aggregate.rest), collection.json_object(argument.type, aggregate.rest[0].type, aggregate.bytes_max)
    if aggregate.rest:
        arguments = (argument, *aggregate.rest)
        return arguments, collection.count_distinct_rows([each.type for each in arguments])
    if function in ("sum", "avg", *_VARIANCES):
        argument = _number(argument)
    make = _plain(aggregate, argument)
    if aggregate.distinct and function not in ("min", "max"):
        key = equality_key(argument.type) or _itself
        plain = make
        make = lambda: Distinct(plain(), key)  # noqa: E731
    return (argument,), make


def _plain(aggregate: Aggregate, argument: Expression) -> Callable[[], Accumulator]:
    function, type_ = aggregate.function, aggregate.type
    if function == "count":
        return Count
    if function in ("sum", "avg"):
        divide = function == "avg"
        added = type_.scale - argument.type.scale if divide else None
        return (lambda: FloatSum(divide)) if type_.kind in REALS else (lambda: ExactSum(type_, added))
    if function in ("min", "max"):
        key = extreme_key(argument.type) or _itself
        return lambda: Extreme(key, function == "max")
    if function in ("bit_and", "bit_or", "bit_xor"):
        to_integer = conversion(argument.type, Domain.INTEGER).function or _itself
        least, most = (0, BIGINT_MASK) if argument.type.unsigned or argument.type.kind is Kind.BIT else _SIGNED
        return lambda: Bits(function, lambda value: max(least, min(to_integer(value), most)))
    if function in _VARIANCES:
        sample, root = _VARIANCES[function]
        return lambda: Variance(sample, root)
    if function == "any_value":
        return AnyValue
    raise Unsupported(f"the aggregate function {function}")


def _number(argument: Expression) -> Expression:
    """Text as a float, a date as 20200102: what adding 0 makes of it."""
    return argument if argument.type.kind in NUMBERS else call("+", argument, Literal(0, INT))


def _itself(value: Value) -> Any:
    return value
