"""Aggregate functions as code over slots of a group's state, exact under removal.

Every function can take rows away again and then is what it would be without them: sums are
kept exactly (integers; decimals with room to spare; floats as integers of 2⁻¹⁰⁷⁴, so neither
order nor removal leaves a trace), extremes and texts keep an ordered bag of their values.

A function is a list of slots with initial values, code that absorbs a value of some weight,
and an expression for the result. Slot 0 of every state is the group's number of rows.
"""

from __future__ import annotations

import decimal
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from dataflow.aggregates import group_concat
from dataflow.errors import Unsupported
from dataflow.expressions.source import FunctionSource
from dataflow.functions.arithmetic import divide_decimal
from dataflow.plan.node import AggregateFunction
from dataflow.state.ordered_bag import OrderedBag
from dataflow.values import documents
from dataflow.values.comparison import order_key
from dataflow.values.numerals import INT64_MAX
from dataflow.values.ordering import entry_key, order_source
from dataflow.values.types import BLOBS, INTEGERS, REALS, Kind, SqlType

_WIDE = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_MASK = (1 << 64) - 1
_ONE = 1 << 1074
_LARGEST = int(sys.float_info.max)
"""1.0 in units of the smallest float."""

Slots = Sequence[str]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """`initial`: source of each slot's first value. `absorb` writes code, `result` gives source."""

    initial: tuple[str, ...]
    absorb: Callable[[FunctionSource, Slots, Mapping[int, str], str], None]
    result: Callable[[FunctionSource, Slots], str]


def float_units(value: float) -> int:
    """A float as a whole number of 2⁻¹⁰⁷⁴."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_ONE // denominator)


def units_float(units: int, divisor: int = 1) -> float:
    """Nearest float to units / divisor; out of range is an error like any other overflow."""
    try:
        return units / (_ONE * divisor)
    except OverflowError:
        return math.inf if units > 0 else -math.inf


def _number(kind: SqlType) -> Callable[[Any], Any]:
    """What SUM and AVG add: integers and decimals as they are, anything else as a float."""
    from dataflow.values.conversion import Domain, conversion

    if kind.kind in INTEGERS or kind.kind in (Kind.DECIMAL, Kind.YEAR, Kind.BIT):
        return lambda value: value
    if kind.kind in REALS:
        return float
    convert = conversion(kind, Domain.NUMBER).function or (lambda value: value)
    return convert


_UNITS = [Decimal(1).scaleb(-scale) for scale in range(82)]
_SMALL = {number: Decimal(number) for number in range(-100, 1001)}
"""Sums that many groups have are one object for all of them: a Decimal takes 104 bytes."""


def _rounded(value: Decimal | int, scale: int) -> Decimal:
    return _WIDE.quantize(Decimal(value), _UNITS[scale])


def exact_sum(total: Any, count: int, scale: int) -> Decimal | None:
    if not count:
        return None
    small = None if scale else _SMALL.get(total)
    return _rounded(total, scale) if small is None else small


def exact_average(total: Any, count: int, scale: int, added: int) -> Decimal | None:
    if not count:
        return None
    average = divide_decimal(total, count, added)
    assert average is not None
    return _WIDE.quantize(average, _UNITS[scale])


def _float_sum(total: int, count: int) -> float | None:
    return units_float(total) if count else None


def _float_average(total: int, count: int) -> float | None:
    return units_float(total, count) if count else None


def _variance(count: int, total: int, squares: int, *, sample: bool, root: bool) -> float | None:
    """Sums are in units of 2⁻¹⁰⁷⁴ and of its square."""
    divisor = count * (count - 1) if sample else count * count
    if count <= (1 if sample else 0):
        return None
    spread = count * squares - total * total
    try:
        result = spread / (divisor * _ONE * _ONE)
    except OverflowError:
        # The square is beyond a double; its root need not be.
        return float(min(math.isqrt(spread // divisor) // _ONE, _LARGEST) if root else _LARGEST)
    return math.sqrt(result) if root else result


def accumulator(code: FunctionSource, function: AggregateFunction, only_grows: bool = False) -> Accumulator:
    """The code of one aggregate function; unknown ones are an error when the query is planned.

    `only_grows`: values are never taken away again, so less of them has to be kept.
    """
    name = function.function
    if name == "count_star" or (name == "count" and not function.arguments):
        return Accumulator((), lambda *_: None, lambda _code, _slots: "s[0]")
    if name == "group_concat":
        return _group_concat(function)
    if name == "count":
        return _count_distinct(function) if function.distinct else _count(function)
    makers = {
        "sum": _sum, "avg": _sum, "min": _extreme, "max": _extreme, "any_value": _extreme,
        "bit_and": _bits, "bit_or": _bits, "bit_xor": _bits,
        "std": _spread, "stddev": _spread, "stddev_pop": _spread, "stddev_samp": _spread,
        "variance": _spread, "var_pop": _spread, "var_samp": _spread,
        "json_arrayagg": _json_array, "json_objectagg": _json_object,
    }  # fmt: skip
    if only_grows and makers.get(name) is _extreme:
        return _first_or_last(function)
    if name not in makers:
        raise Unsupported(f"aggregate function {name}")
    return makers[name](function)


def _given(code: FunctionSource, function: AggregateFunction, columns: Mapping[int, str]) -> str:
    """Evaluate the argument and open a block for when it is not NULL."""
    value = code.fresh("v")
    code.line(f"{value} = {code.value(function.arguments[0], columns)}")
    code.open(f"if {value} is not None:")
    return value


def _count(function: AggregateFunction) -> Accumulator:
    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        _given(code, function, columns)
        code.line(f"{slots[0]} += {weight}")

    return Accumulator(("0",), absorb, lambda _code, slots: slots[0])


def _tally(code: FunctionSource, slot: str, entry: str, weight: str) -> None:
    """Count `entry` in the dict at `slot`."""
    count = code.fresh("n")
    code.line(f"{count} = {slot}.get({entry}, 0) + {weight}")
    with code.block(f"if {count}:"):
        code.line(f"{slot}[{entry}] = {count}")
    with code.block("else:"):
        code.line(f"{slot}.pop({entry}, None)")


def _count_distinct(function: AggregateFunction) -> Accumulator:
    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        names = [code.fresh("v") for _ in function.arguments]
        for name, argument in zip(names, function.arguments, strict=True):
            code.line(f"{name} = {code.value(argument, columns)}")
        code.open(f"if {' and '.join(f'{name} is not None' for name in names)}:")
        entry = code.fresh("e")
        code.line(f"{entry} = {code.key(names, [each.type for each in function.arguments])}")
        _tally(code, slots[0], entry, weight)

    return Accumulator(("{}",), absorb, lambda _code, slots: f"len({slots[0]})")


def _sum(function: AggregateFunction) -> Accumulator:
    argument, average = function.arguments[0].type, function.function == "avg"
    exact = function.type.kind is Kind.DECIMAL
    integral = argument.kind in INTEGERS or argument.kind in (Kind.YEAR, Kind.BIT)

    def number(code: FunctionSource, value: str) -> str:
        """The value as it is added: an integer, a Decimal, or units of a float."""
        if not exact:
            return f"{code.constant(float_units)}(float({code.constant(_number(argument))}({value})))"
        if integral or argument.kind is Kind.DECIMAL:
            return value
        return f"{code.constant(_decimal)}({code.constant(_number(argument))}({value}))"

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        added = number(code, _given(code, function, columns))
        if function.distinct:
            _tally(code, slots[0], added, weight)
            return
        if exact and not integral:
            wide = code.constant(_WIDE)
            code.line(f"{slots[0]} = {wide}.add({slots[0]}, {wide}.multiply({added}, {weight}))")
        else:
            code.line(f"{slots[0]} += {added} * {weight}")
        code.line(f"{slots[1]} += {weight}")

    def result(code: FunctionSource, slots: Slots) -> str:
        if exact:
            added = f", {function.type.scale - argument.scale}" if average else ""
            finish = f"{code.constant(exact_average if average else exact_sum)}({{}}, {{}}, {function.type.scale}{added})"
        else:
            finish = f"{code.constant(_float_average if average else _float_sum)}({{}}, {{}})"
        if function.distinct:
            total = f"{code.constant(_wide_sum) if exact and not integral else 'sum'}({slots[0]})"
            return finish.format(total, f"len({slots[0]})")
        return finish.format(slots[0], slots[1])

    return Accumulator(("{}",) if function.distinct else ("0", "0"), absorb, result)


def _wide_sum(values: Any) -> Decimal:
    return reduce(_WIDE.add, values, Decimal(0))


def _decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value)


def _extreme(function: AggregateFunction) -> Accumulator:
    end = "last" if function.function == "max" else "first"
    key = entry_key(function.arguments[0].type)

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = _given(code, function, columns)
        entry = value if key is None else f"{code.constant(key)}({value})"
        code.line(f"{slots[0]}.add({entry}, {weight})")

    def result(code: FunctionSource, slots: Slots) -> str:
        tail = "" if key is None else "[-1]"
        return f"({slots[0]}.{end}{tail} if {slots[0]}.counts else None)"

    return Accumulator(("OrderedBag()",), absorb, result)


def _first_or_last(function: AggregateFunction) -> Accumulator:
    """As `_extreme`, where no value is taken away."""
    key = entry_key(function.arguments[0].type)
    is_better = ">" if function.function == "max" else "<"

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = _given(code, function, columns)
        entry = value
        if key is not None:
            entry = code.fresh("e")
            code.line(f"{entry} = {code.constant(key)}({value})")
        with code.block(f"if {slots[0]} is None or {entry} {is_better} {slots[0]}:"):
            code.line(f"{slots[0]} = {entry}")

    def result(code: FunctionSource, slots: Slots) -> str:
        return slots[0] if key is None else f"({slots[0]} and {slots[0]}[-1])"

    return Accumulator(("None",), absorb, result)


def _signed(convert: Callable[[Any], int]) -> Callable[[Any], int]:
    """A number that is no unsigned integer is read as a signed one."""
    return lambda value: min(convert(value), INT64_MAX)


def _bits(function: AggregateFunction) -> Accumulator:
    from dataflow.values.conversion import Domain, conversion

    convert = conversion(function.arguments[0].type, Domain.INTEGER).function
    if convert is not None and function.arguments[0].type.kind is Kind.DECIMAL and not function.arguments[0].type.unsigned:
        convert = _signed(convert)
    name = function.function

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = _given(code, function, columns)
        whole = f"({value if convert is None else f'{code.constant(convert)}({value})'} & {_MASK})"
        if name == "bit_xor":
            with code.block(f"if {weight} & 1:"):
                code.line(f"{slots[0]} ^= {whole}")
        else:
            code.line(f"{value} = {whole}")
            _tally(code, slots[0], value, weight)

    def result(code: FunctionSource, slots: Slots) -> str:
        if name == "bit_xor":
            return slots[0]
        fold = (lambda bag: reduce(int.__and__, bag, _MASK)) if name == "bit_and" else (lambda bag: reduce(int.__or__, bag, 0))
        return f"{code.constant(fold)}({slots[0]})"

    return Accumulator(("0",) if name == "bit_xor" else ("{}",), absorb, result)


def _spread(function: AggregateFunction) -> Accumulator:
    sample, root = function.function.endswith("samp"), function.function.startswith("std")

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = _given(code, function, columns)
        number = code.constant(_number(function.arguments[0].type))
        code.line(f"{value} = {code.constant(float_units)}(float({number}({value})))")
        code.line(f"{slots[0]} += {weight}")
        code.line(f"{slots[1]} += {value} * {weight}")
        code.line(f"{slots[2]} += {value} * {value} * {weight}")

    def result(code: FunctionSource, slots: Slots) -> str:
        return f"{code.constant(_variance)}({', '.join(slots)}, sample={sample}, root={root})"

    return Accumulator(("0", "0", "0"), absorb, result)


def _group_concat(function: AggregateFunction) -> Accumulator:
    """Entries are (order…, text's key, text): sorted as asked, then by the text itself."""
    kind = function.arguments[0].type

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = _given(code, function, columns)
        parts = [order_source(code, each, columns) for each in function.order]
        code.line(f"{slots[0]}.add(({', '.join([*parts, code.part(value, kind), value])},), {weight})")

    def result(code: FunctionSource, slots: Slots) -> str:
        finish = lambda bag: _concatenated(bag, function)  # noqa: E731
        return f"{code.constant(finish)}({slots[0]})"

    return Accumulator(("OrderedBag()",), absorb, result)


def _concatenated(bag: OrderedBag, function: AggregateFunction) -> str | bytes | None:
    if not bag.counts:
        return None
    values = _unique(bag) if function.distinct else (entry[-1] for entry in bag.entries for _ in range(bag.counts[entry]))
    join = group_concat.concatenated_bytes if function.type.kind in BLOBS else group_concat.concatenated
    return join(values, function.separator, function.bytes_max)


def _unique(bag: OrderedBag) -> Iterator[Any]:
    seen: set[Any] = set()
    for entry in bag.entries:
        if entry[-2] not in seen:
            seen.add(entry[-2])
            yield entry[-1]


def _json_array(function: AggregateFunction) -> Accumulator:
    """All values, NULLs too, in their own order: the order of the rows leaves no trace."""
    kind = function.arguments[0].type
    key, document = order_key(kind), _document(kind)
    entry = lambda value: (value is not None, 0 if value is None else key(value) if key else value, document(value))  # noqa: E731

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        value = code.value(function.arguments[0], columns)
        code.line(f"{slots[0]}.add({code.constant(entry)}({value}), {weight})")

    def finish(bag: OrderedBag) -> str | None:
        found = [each[-1] for each in bag.entries for _ in range(bag.counts[each])]
        return group_concat.json_array(found, function.bytes_max)

    return Accumulator(("OrderedBag()",), absorb, lambda code, slots: f"{code.constant(finish)}({slots[0]})")


def _json_object(function: AggregateFunction) -> Accumulator:
    """Of several members of one name the greatest document stays. A name is never NULL: see the planner."""
    from dataflow.values.conversion import Domain, conversion

    name, document = function.arguments
    to_text = conversion(name.type, Domain.TEXT).function or (lambda value: value)
    to_json = _document(document.type)

    def absorb(code: FunctionSource, slots: Slots, columns: Mapping[int, str], weight: str) -> None:
        parts = (code.constant(to_text), code.value(name, columns), code.constant(to_json), code.value(document, columns))
        code.line(f"{slots[0]}.add(({parts[0]}({parts[1]}), {parts[2]}({parts[3]})), {weight})")

    def finish(bag: OrderedBag) -> str | None:
        members: dict[str, str] = dict(bag.entries)
        pairs = [f"{documents.dumps(each)}: {value}" for each, value in members.items()]
        found = group_concat.json_object(pairs, function.bytes_max)
        return None if found is None else documents.normalise(found)

    return Accumulator(("OrderedBag()",), absorb, lambda code, slots: f"{code.constant(finish)}({slots[0]})")


def _document(kind: SqlType) -> Callable[[Any], str]:
    from dataflow.values.conversion import Domain, conversion

    convert = conversion(kind, Domain.JSON_VALUE).function or str
    return lambda value: "null" if value is None else str(convert(value))
