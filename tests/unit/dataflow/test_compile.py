"""The compiler itself: what its source may rely on, beyond giving the right values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import Emitter, compile_predicate, compile_row, compile_scalar
from dataflow.expressions.expression import Column, Expression, Literal, Parameter
from dataflow.functions import call, is_function
from dataflow.functions.casts import cast, collate
from dataflow.functions.logic import TERMS_MAX
from dataflow.values.conversion import Domain
from dataflow.values.types import (
    BIGINT,
    DATETIME,
    DOUBLE,
    INT,
    JSON,
    NULL,
    Kind,
    SqlType,
    Value,
    decimal,
    text,
)

A, B, S = Column(0, INT), Column(1, INT), Column(2, text(20))


def literal(value: Value) -> Literal:
    match value:
        case int():
            return Literal(value, BIGINT)
        case Decimal():
            return Literal(value, decimal(20, -int(value.as_tuple().exponent)))
        case float():
            return Literal(value, DOUBLE)
        case None:
            return Literal(None, NULL)
        case _:
            return Literal(value, text(len(value)))


def evaluate(expression: Expression, row: tuple[Value, ...] = (), parameters: tuple[Value, ...] = ()) -> Any:
    return compile_scalar(expression)(row, parameters)


def test_a_row_of_values_is_a_tuple() -> None:
    assert compile_row([call("+", A, B), S])((1, 2, "x"), ()) == (3, "x")
    assert compile_row([])((), ()) == ()


def test_a_predicate_is_true_only_where_sql_is() -> None:
    test = compile_predicate(call("or", call("=", A, literal(1)), call(">", B, literal(5))))
    assert test((1, None, ""), ()) is True
    assert test((None, 9, ""), ()) is True
    assert test((None, None, ""), ()) is False
    assert test((2, None, ""), ()) is False


def test_emitted_source_reads_the_variables_it_is_told_to() -> None:
    emitter = Emitter(columns={0: "left_0", 1: "right_0"}, parameters="arguments")
    source = emitter.output(call("=", call("+", A, B), Parameter(0, INT)))
    assert "left_0" in source and "right_0" in source and "arguments[0]" in source
    namespace = emitter.namespace | {"left_0": 1, "right_0": 2, "arguments": (3,)}
    assert eval(source, namespace) == 1


def test_emitters_may_share_a_namespace() -> None:
    namespace: dict[str, Any] = {}
    sources = [Emitter(namespace=namespace).truth(call("=", S, literal(value))) for value in ("A", "B")]
    assert [eval(source, namespace | {"r": (0, 0, "b")}) for source in sources] == [False, True]


def test_hoisting_converts_a_parameter_once() -> None:
    emitter = Emitter(hoist=True)
    condition = emitter.truth(call("=", S, Parameter(0, text(20))))
    assert len(emitter.prelude) == 1 and "p[0]" not in condition
    body = "\n".join(f"    {line}" for line in emitter.prelude)
    exec(f"def f(rows, p):\n{body}\n    return [r for r in rows if {condition}]", emitter.namespace)
    assert emitter.namespace["f"]([(0, 0, "ABC"), (0, 0, "x")], ("abc",)) == [(0, 0, "ABC")]


def test_constants_are_folded() -> None:
    assert Emitter().source(call("+", literal(1), literal(2))) == "3"
    assert Emitter().truth(call(">", A, call("*", literal(2), literal(3)))) == "(r[0] is not None and r[0] > 6)"


def test_an_error_in_a_constant_waits_until_it_is_run() -> None:
    function = compile_scalar(call("if", A, call("+", literal(9223372036854775807), literal(1)), literal(0)))
    assert function((0,), ()) == 0
    with pytest.raises(InvalidStatement) as raised:
        function((1,), ())
    assert raised.value.condition is Condition.VALUE_OUT_OF_RANGE


def test_expressions_may_nest_deeply() -> None:
    sum_, choice = call("+", A, literal(1)), call("or", call("=", A, literal(0)), call("=", A, literal(1)))
    for _ in range(1, 100):
        sum_ = call("+", sum_, literal(1))
    for number in range(2, 400):
        choice = call("or", choice, call("=", A, literal(number)))
    assert evaluate(sum_, (0,)) == 100
    assert compile_predicate(choice)((399,), ()) and not compile_predicate(choice)((400,), ())
    emitter = Emitter(columns=["x"])
    assert eval(emitter.output(sum_), emitter.namespace | {"x": 1, "p": ()}) == 101


@pytest.mark.parametrize("operator", ["and", "or"])
@pytest.mark.parametrize("count", [TERMS_MAX, TERMS_MAX + 1, 7 * TERMS_MAX])
def test_many_terms_are_as_few_and_no_function_is_long(operator: str, count: int) -> None:
    terms = [call("=", Column(index, INT), literal(1)) for index in range(count)]
    wide = call(operator, *terms)
    decides, others = (0, 1) if operator == "and" else (1, 0)
    for place in (0, TERMS_MAX - 1, count - 1):
        for special, expected in ((decides, decides), (None, None), (others, others)):
            row = tuple(special if index == place else others for index in range(count))
            assert evaluate(wide, row) == expected
            assert compile_predicate(wide)(row, ()) is (expected == 1)
            assert compile_predicate(call("not", wide))(row, ()) is (expected == 0)
    emitter = Emitter()
    assert emitter.source(wide).count("==") <= TERMS_MAX


def test_wrong_argument_counts_and_names_are_refused() -> None:
    with pytest.raises(InvalidStatement) as raised:
        call("ifnull", A)
    assert raised.value.condition is Condition.WRONG_ARGUMENT_COUNT
    with pytest.raises(InvalidStatement) as raised:
        call("no_such_function")
    assert raised.value.condition is Condition.UNKNOWN_FUNCTION
    assert is_function("COALESCE") and not is_function("no_such_function")


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [(5, 5, 1), ("5", 5, 1), (5.0, 5, 1), (Decimal("5.0"), 5, 1), (b"5", 5, 1), ("x", 5, 0), (None, 5, None)],
)
def test_a_parameter_of_unknown_type_compares_by_its_value_with_a_number(value: Value, column: int, expected: int | None) -> None:
    assert evaluate(call("=", A, Parameter(0, NULL)), (column,), (value,)) == expected


@pytest.mark.parametrize(("value", "expected"), [("ABC", 1), (b"ABC", 0), (b"abc", 1), (0, 1), (1.5, 0), (None, None)])
def test_a_parameter_of_unknown_type_compares_by_its_value_with_text(value: Value, expected: int | None) -> None:
    assert evaluate(call("=", S, Parameter(0, NULL)), (0, 0, "abc"), (value,)) == expected
    assert evaluate(call("=", Parameter(0, NULL), S), (0, 0, "abc"), (value,)) == expected


def test_dates_compare_with_text_and_numbers() -> None:
    day = Column(0, DATETIME)
    noon = evaluate(cast(literal("2020-01-02 12:00:00"), DATETIME))
    midnight = evaluate(cast(literal("2020-01-02"), DATETIME))
    assert evaluate(call(">", day, literal("2020-01-02")), (noon,)) == 1
    assert evaluate(call("=", day, literal(20200102120000)), (noon,)) == 1
    assert evaluate(call("=", day, literal(20200102)), (midnight,)) == 1
    assert evaluate(call("=", day, literal("0000-00-00 00:00:00")), (0,)) == 1
    assert evaluate(call("in", day, literal("2020-01-02"), literal("2020-01-02 12:00:00")), (noon,)) == 1


def test_quotients_keep_their_digits_inside_an_expression() -> None:
    third = call("/", A, literal(3))
    assert evaluate(third, (2,)) == Decimal("0.6667")
    assert str(evaluate(call("*", third, literal(3)), (2,))) == "2.0000"
    assert evaluate(call("/", A, literal(0)), (2,)) is None


@pytest.mark.parametrize("operator", ["/", "div", "%"])
def test_division_by_zero_is_null_or_an_error_as_asked(operator: str) -> None:
    quotient = call(operator, A, B)
    assert evaluate(quotient, (1, 0)) is None
    strict = compile_scalar(quotient, division_errors=True)
    assert strict((6, None), ()) is None and strict((6, 4), ()) is not None
    with pytest.raises(InvalidStatement) as raised:
        strict((1, 0), ())
    assert raised.value.condition is Condition.DIVISION_BY_ZERO
    constant = compile_scalar(call(operator, literal(1), literal(0)), division_errors=True)
    with pytest.raises(InvalidStatement):
        constant((), ())


def test_integer_overflow_is_an_error_of_the_signedness() -> None:
    unsigned = Column(0, SqlType(Kind.INT, unsigned=True))
    with pytest.raises(InvalidStatement, match="BIGINT UNSIGNED value is out of range"):
        evaluate(call("-", unsigned, literal(2)), (1,))
    assert evaluate(call("-", A, literal(2)), (1,)) == -1


def test_collations_that_both_have_a_claim_clash() -> None:
    other = Column(3, text(20, "utf8mb4_unicode_ci"))
    with pytest.raises(InvalidStatement) as raised:
        call("=", S, other)
    assert raised.value.condition is Condition.ILLEGAL_COLLATION_MIX
    assert evaluate(call("=", collate(S, "utf8mb4_bin"), other), (0, 0, "a", "A")) == 0


def test_json_arguments_are_values() -> None:
    emitter = Emitter()
    assert emitter.convert(literal("abc"), Domain.JSON_VALUE).source == repr('"abc"')
    assert emitter.convert(call("=", literal(1), literal(1)), Domain.JSON_VALUE).source != "1"
    assert evaluate(cast(literal('{"b":1,"a":2}'), JSON)) == '{"a": 2, "b": 1}'
    assert evaluate(call("=", cast(literal('"x"'), JSON), literal("x"))) == 1


def test_rows_compare_part_by_part() -> None:
    pair = call("row", A, B)
    assert evaluate(call("<", pair, call("row", literal(1), literal(3))), (1, 2)) == 1
    assert evaluate(call("in", pair, call("row", literal(1), literal(2)), call("row", literal(3), literal(4))), (3, 4)) == 1
    with pytest.raises(InvalidStatement) as raised:
        call("=", pair, literal(1))
    assert raised.value.condition is Condition.OPERAND_COLUMNS


def test_a_long_list_of_parameters_is_looked_up_as_a_short_one() -> None:
    def listed(count: int) -> Expression:
        return call("in", S, *(Parameter(index, text(20)) for index in range(count)), Literal("Last", text(4)))

    names = tuple(f"n{index}" for index in range(20))
    for count in (3, 20):
        test = compile_scalar(listed(count))
        for parameters in (names[:count], (*names[: count - 1], None), list(names[:count])):
            found = [test((0, 0, value), parameters) for value in ("n0", "N1", "last", "other", None)]
            assert found == [1, 1, 1, None if None in parameters else 0, None]
    changing = [f"n{index}" for index in range(20)]
    test = compile_scalar(listed(20))
    assert test((0, 0, "n3"), changing) == 1
    changing[3] = "x"
    assert test((0, 0, "n3"), changing) == 0


@pytest.mark.parametrize("count", [3, 40])
def test_a_list_of_literals_needs_no_parameters(count: int) -> None:
    """Where views are maintained there are none."""
    emitter = Emitter(row="r", parameters="nothing")
    column = Column(0, INT)
    source = emitter.output(call("in", column, *(Literal(number, INT) for number in range(count))))
    assert [eval(source, emitter.namespace, {"r": (value,)}) for value in (0, count - 1, count, None)] == [1, 1, 0, None]
