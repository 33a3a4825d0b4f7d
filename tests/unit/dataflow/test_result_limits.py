"""No value becomes longer than max_allowed_packet, and the memory for it is not taken either."""

from __future__ import annotations

import tracemalloc
from time import process_time
from typing import Any

import pytest

from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Expression, Literal, Parameter
from dataflow.expressions.notices import listen
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.values.result_limits import PACKET_BYTES_MAX, ResultSettings, planning_for
from dataflow.values.types import BIGINT, BLOB, DOUBLE, JSON, Kind, SqlType, decimal, text

MIB = 1 << 20
SMALL = ResultSettings(packet_bytes_max=MIB)


def value_of(name: str, *values: object) -> tuple[Any, list[int]]:
    """Its result and the codes of its warnings, under a limit of one MiB."""
    types = [BIGINT if isinstance(v, int) else BLOB if isinstance(v, bytes) else text() for v in values]
    with planning_for(SMALL):
        function = compile_scalar(call(name, *(Parameter(at, each) for at, each in enumerate(types))))
    heard = listen()
    result = function((), values)  # type: ignore[arg-type]
    return result, [condition.code for condition, _ in heard]


LONG = "a" * (MIB // 2)
NESTED = "[" * 90 + ",".join(["1"] * 20_000) + "]" * 90
TOO_LONG = [
    ("repeat", "ab", 1 << 40), ("space", 1 << 40), ("lpad", "a", 1 << 40, "x"), ("rpad", "a", 1 << 40, "x"),
    ("replace", LONG, "a", "b" * 1000), ("concat", LONG, LONG, LONG), ("concat", *[LONG] * 500), ("concat_ws", LONG, *["x"] * 500),
    ("hex", LONG + LONG), ("to_base64", (LONG + LONG).encode()), ("insert", LONG, 1, 0, LONG + LONG), ("quote", "'" * MIB),
    ("export_set", 5, LONG, LONG), ("make_set", 7, LONG, LONG, LONG), ("regexp_replace", LONG, "a", "b" * 1000),
    ("regexp_replace", LONG, "(a+)", "$1" * 1000), ("regexp_replace", LONG, "(a+)", "$1" * 1000, 1, 1),
    ("json_array", *[LONG] * 10), ("json_object", "a", LONG, "b", LONG, "c", LONG), ("json_quote", '"' * MIB),
    ("json_pretty", NESTED), ("json_extract", f'["{LONG}"]', *["$"] * 500), ("json_set", "{}", "$.a", LONG, "$.b", LONG, "$.c", LONG),
    ("json_search", '{"' + "k" * 1000 + '": [' + ", ".join(['"x"'] * 20_000) + "]}", "all", "x"),
    ("date_format", "2020-01-01", "%W" * (MIB // 2)), ("uncompress", (1 << 29).to_bytes(4, "little") + b"x"),
    ("json_merge_preserve", f'["{LONG}"]', f'["{LONG}"]', f'["{LONG}"]'),
]  # fmt: skip


@pytest.mark.parametrize("case", TOO_LONG, ids=lambda case: case[0])
def test_what_would_be_too_long_is_null_with_a_warning(case: tuple[Any, ...]) -> None:
    tracemalloc.start()
    try:
        assert value_of(*case) == (None, [1301])
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("case", "length"),
    [
        (("repeat", "é", MIB // 2), MIB // 2), (("concat", LONG, LONG), MIB), (("hex", LONG), MIB),
        (("replace", LONG, "a", "bb"), MIB), (("regexp_replace", LONG, "a{64}", "b" * 128), MIB), (("lpad", "", MIB, "x"), MIB),
        (("space", MIB), MIB), (("make_set", 1, LONG, LONG, LONG), MIB // 2), (("repeat", "x", -1), 0),
    ],
)  # fmt: skip
def test_what_just_fits_is_whole(case: tuple[Any, ...], length: int) -> None:
    result, warnings = value_of(*case)
    assert (len(result), warnings) == (length, [])


def test_the_limit_counts_bytes() -> None:
    assert value_of("repeat", "é", MIB // 2 + 1)== (None, [1301])


def test_a_limit_is_part_of_the_expression() -> None:
    plain = call("repeat", Literal("a", text(1)), Literal(3, BIGINT))
    with planning_for(SMALL):
        limited = call("repeat", Literal("a", text(1)), Literal(3, BIGINT))
    assert plain != limited
    assert compile_scalar(plain)((), ()) == compile_scalar(limited)((), ()) == "aaa"


def test_long_constants_are_not_kept_with_the_code() -> None:
    function = compile_scalar(call("repeat", Literal("a", text(1)), Literal(PACKET_BYTES_MAX // 8, BIGINT)))
    kept = [value for value in function.__globals__.values() if isinstance(value, str | bytes) and len(value) > MIB]
    assert not kept
    assert len(str(function((), ()))) == PACKET_BYTES_MAX // 8


@pytest.mark.parametrize("inner", [call("uuid_to_bin", Literal("x", text(1))), call("repeat", Literal("x", text(1)), Literal(1 << 40, BIGINT))])
def test_constants_that_cannot_be_folded_are_tried_once(inner: Expression) -> None:
    for _ in range(60):
        inner = call("hex", inner)
    compile_scalar(inner)  # each level tried the ones below twice: 2^60


def test_digits_of_a_very_long_number_are_read_in_linear_time() -> None:
    assert value_of("conv", "9" * MIB, 10, 16)[0] == "F" * 16


@pytest.mark.parametrize("kind", [text(), JSON, SqlType(BLOB.kind)])
def test_types_stay(kind: SqlType) -> None:
    with planning_for(SMALL):
        made = call("concat", Parameter(0, kind))
    assert made.type == call("concat", Parameter(0, kind)).type


DIGITS = "9" * 100_000


@pytest.mark.parametrize("value", [DIGITS, "-" + DIGITS, "0" * 5000 + "7", "1e" + DIGITS, "1e-" + DIGITS, "1." + DIGITS, "10:" + DIGITS])
@pytest.mark.parametrize("kind", [BIGINT, decimal(20, 2), DOUBLE, SqlType(Kind.DATETIME), SqlType(Kind.TIME), SqlType(Kind.YEAR)])
def test_very_long_numbers_are_converted(value: str, kind: SqlType) -> None:
    compile_scalar(cast(Parameter(0, text()), kind))((), (value,))
    compile_scalar(call("substring", Parameter(0, text()), Parameter(1, text())))((), ("abc", value))


def test_a_long_pattern_is_read_in_linear_time() -> None:
    assert value_of("like", LONG, LONG + "%")[0] == 1


def test_what_is_made_of_long_constants_is_not_computed_level_by_level() -> None:
    inner: Expression = Literal("a", text(1))
    for _ in range(45):
        inner = call("hex", inner)
    began = process_time()
    compile_scalar(inner)
    assert process_time() - began < 2
