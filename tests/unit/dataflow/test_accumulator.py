"""Aggregate functions forget rows without a trace."""

from __future__ import annotations

import math
import random
import statistics
from decimal import Decimal

import pytest

from dataflow.aggregates.accumulator import float_units, units_float
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Column
from dataflow.plan.node import Aggregate, AggregateFunction, Base
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Hit
from dataflow.values.types import BIGINT, DOUBLE, INT, SqlType, Value, decimal, text
from tests.unit.dataflow.test_joins import Tables


def aggregated(function: str, kind: SqlType, result: SqlType, added: list[Value], removed: list[Value]) -> Value:
    """The value of a group after rows came and went."""
    base = Base(1, (INT, kind), (0,), "t")
    tables = Tables([base])
    engine = Engine(tables)
    node = Aggregate(base, (), (AggregateFunction(function, (Column(1, kind),), result),))
    view = engine.add_view(node, ())
    rows = [(number, value) for number, value in enumerate(added)]
    engine.apply(1, {1: tables.add(1, rows)})
    gone = []
    for value in removed:
        gone.append(next(row for row in rows if row[1] == value and row not in gone))
    engine.apply(2, {1: [(row, -1) for row in gone]})
    found = engine.lookup(view, [()])[0]
    assert isinstance(found, Hit)
    return found.rows[0][0]


def test_a_float_that_comes_and_goes_leaves_the_sum_as_it_was() -> None:
    assert aggregated("sum", DOUBLE, DOUBLE, [0.1, 1e300, 0.2], [1e300]) == math.fsum([0.1, 0.2])


def test_float_sums_do_not_depend_on_order() -> None:
    draw = random.Random(3)
    values: list[Value] = [draw.uniform(-1e6, 1e6) * 10 ** draw.randrange(-20, 20) for _ in range(300)]
    expected = aggregated("sum", DOUBLE, DOUBLE, values, [])
    draw.shuffle(values)
    assert aggregated("sum", DOUBLE, DOUBLE, values, []) == expected == math.fsum(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.0, -0.1, 5e-324, 1.7e308, 3.5])
def test_units_of_a_float_give_it_back(value: float) -> None:
    assert units_float(float_units(value)) == value


def test_decimals_keep_all_digits() -> None:
    kind = decimal(40, 20)
    values: list[Value] = [Decimal("12345678901234567890.12345678901234567890"), Decimal("0.00000000000000000001")]
    assert aggregated("sum", kind, decimal(62, 20), values, []) == Decimal("12345678901234567890.12345678901234567891")


def test_average_of_integers_has_four_more_digits_rounded_half_up() -> None:
    assert aggregated("avg", INT, decimal(14, 4), [1, 1, 2, 2, 2], [2]) == Decimal("1.5000")
    assert aggregated("avg", INT, decimal(14, 4), [1, 0, 0], []) == Decimal("0.3333")
    assert aggregated("avg", INT, decimal(14, 4), [2, 2, 1], []) == Decimal("1.6667")


def test_spread_equals_the_textbook() -> None:
    values: list[Value] = [3, 5, 8, 13, 21]
    assert aggregated("stddev_samp", INT, DOUBLE, [*values, 99], [99]) == pytest.approx(statistics.stdev([3, 5, 8, 13, 21]))
    assert aggregated("var_pop", INT, DOUBLE, values, []) == pytest.approx(statistics.pvariance([3, 5, 8, 13, 21]))
    assert aggregated("var_samp", INT, DOUBLE, [1], []) is None


def test_bits_of_no_rows_are_all_ones_or_none() -> None:
    assert aggregated("bit_and", INT, BIGINT, [], []) == (1 << 64) - 1
    assert aggregated("bit_or", INT, BIGINT, [1, 6], [6]) == 1
    assert aggregated("bit_xor", INT, BIGINT, [-1], []) == (1 << 64) - 1


def test_the_least_text_is_the_next_one_once_it_is_gone() -> None:
    kind = text(20, "utf8mb4_general_ci")
    assert aggregated("min", kind, kind, ["b", "A", "a", "C"], ["A"]) == "a"
    assert aggregated("max", kind, kind, ["b", "A", "C"], ["C", "b", "A"]) is None



def test_an_unknown_function_is_refused_when_planned() -> None:
    base = Base(1, (INT, INT), (0,), "t")
    with pytest.raises(Unsupported):
        Engine(Tables([base])).add_view(Aggregate(base, (), (AggregateFunction("median", (Column(1, INT),), INT),)), ())
