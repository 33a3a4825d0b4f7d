"""What MySQL 8 answers where MariaDB has no such function, or another answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dataflow.errors import MillraceError
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Call, Column, Literal
from dataflow.functions import call
from dataflow.values.types import BIGINT, DATE, INT, JSON, Kind, SqlType, Value, decimal, text
from tests.unit.dataflow.functions import json_cases
from tests.unit.dataflow.functions.oracle import Case, Unit, clock, day, literal, moment, ours, unsigned

UUID = "6ccd780c-baba-1026-9564-5b8c656024db"


def answer(*case: Any) -> bytes | str | None:
    return ours(case)[0]


def build(name: str, *arguments: Any) -> Call:
    return call(name, *map(literal, arguments))


def value(expression: Call) -> Value:
    return compile_scalar(expression)((), ())


def error_code(case: Case) -> int:
    with pytest.raises(MillraceError) as caught:
        value(build(*case))
    return caught.value.condition.code


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (("is_uuid", UUID), b"1"),
        (("is_uuid", UUID.replace("-", "").upper()), b"1"),
        (("is_uuid", "{" + UUID + "}"), b"1"),
        (("is_uuid", "{" + UUID.replace("-", "") + "}"), b"0"),
        (("is_uuid", "6ccd780c-baba-1026-9564-5b8c6560"), b"0"),
        (("is_uuid", None), None),
        (("uuid_to_bin", UUID), bytes.fromhex("6ccd780cbaba102695645b8c656024db")),
        (("uuid_to_bin", UUID, 1), bytes.fromhex("1026baba6ccd780c95645b8c656024db")),
        (("bin_to_uuid", bytes.fromhex("6ccd780cbaba102695645b8c656024db")), UUID.encode()),
        (("bin_to_uuid", bytes.fromhex("1026baba6ccd780c95645b8c656024db"), 1), UUID.encode()),
        (("regexp_substr", "abc def ghi", "[a-z]+", 1, 3), b"ghi"),
        (("regexp_substr", "abc", "x"), None),
        (("regexp_instr", "dog cat dog", "dog", 2), b"9"),
        (("regexp_instr", "aa aaa aaaa", "a{4}", 1, 1, 1), b"12"),
        (("regexp_replace", "abc def ghi", "[a-z]+", "X", 1, 3), b"abc def X"),
        (("regexp_replace", "abc abc", "B", "x", 1, 0, "c"), b"abc abc"),
        (("regexp_replace", "2020-01-02", "(\\d+)-(\\d+)", "$2/$1"), b"01/2020-02"),
        (("regexp_replace", "abc", "b", "\\$"), b"a$c"),
        (("regexp_replace", "abc", "x*", "-"), b"-a-b-c-"),
        (("member_of", 17, '[23, "abc", 17, "ab", 10]'), b"1"),
        (("member_of", "ab", '[23, "abc", 17, "ab", 10]'), b"1"),
        (("member_of", 7, '[23, "abc", 17, "ab", 10]'), b"0"),
        (("member_of", "17", "[17]"), b"0"),
        (("json_pretty", '{"a":[1,{"b":2}],"c":[],"d":{}}'), b'{\n  "a": [\n    1,\n    {\n      "b": 2\n    }\n  ],\n  "c": [],\n  "d": {}\n}'),
        (("json_pretty", "1"), b"1"),
        (("json_array", 1.5, 1e20, 3.0), b"[1.5, 1e20, 3.0]"),
        (("json_object", "bb", 1, "a", 2, "bb", 3), b'{"a": 2, "bb": 3}'),
        (("json_keys", '{"bb": 1, "a": 2, "ab": 3}'), b'["a", "ab", "bb"]'),
        (("json_extract", '{"b": 1, "a": [1,2]}', "$"), b'{"a": [1, 2], "b": 1}'),
        (("json_extract", "[1, 2, 3, 4]", "$[last-2 to last]"), b"[2, 3, 4]"),
        (("json_extract", "5", "$[last]"), b"5"),
        (("json_extract", "5", "$[0 to 2]"), b"[5]"),
        (("json_extract", "5", "$[*]"), None),
        (("->>", '{"a": "x"}', "$.a"), b"x"),
        (("->", '{"a": "x"}', "$.a"), b'"x"'),
        (("json_set", "[1]", "$[last-5]", 0), b"[0, 1]"),
        (("json_set", "1", "$[last-1]", 0), b"[0, 1]"),
        (("json_type", "18446744073709551615"), b"UNSIGNED INTEGER"),
        (("json_search", '{"a b": "x", "c": ["X", "x"]}', "all", "x"), b'["$.c[1]", "$.\\"a b\\""]'),
        (("round", Decimal("1.5"), 3), b"1.5"),
        (("round", -0.4), b"-0"),
        (("unix_timestamp", "1969-12-31"), b"0"),
        (("from_unixtime", 32536771199), b"3001-01-18 23:59:59"),
        (("from_unixtime", 32536771200), None),
        (("convert_tz", "2020-07-01 12:00:00", "UTC", "Europe/Berlin"), b"2020-07-01 14:00:00"),
        (("convert_tz", "2020-01-01 12:00:00", "America/New_York", "Asia/Tokyo"), b"2020-01-02 02:00:00"),
        (("convert_tz", "2020-03-29 02:30:00", "Europe/Berlin", "UTC"), b"2020-03-29 01:00:00"),
        (("convert_tz", "2020-01-01", "UTC", "Nowhere/Atlantis"), None),
        (("time_format", "10:11:12", "%Y-%m-%d %c %e"), b"0000-00-00 0 0"),
        (("coercibility", "a"), b"4"),
        (("charset", "a"), b"utf8mb4"),
        (("collation", "a"), b"utf8mb4_0900_ai_ci"),
        (("upper", "𐐨"), "𐐀".encode()),
    ],
)  # fmt: skip
def test_answers_as_mysql_documents(case: Case, expected: bytes | None) -> None:
    assert answer(*case) == expected


def test_compressed_bytes_come_back() -> None:
    for plain in (b"a", b"abc" * 1000, b" " * 50):
        packed = value(build("compress", plain))
        assert value(build("uncompress", packed)) == plain
        assert value(build("uncompressed_length", packed)) == len(plain)


@pytest.mark.parametrize(("case", "code"), json_cases.ERRORS.items())
def test_json_mistakes_are_mysql_errors(case: Case, code: int) -> None:
    assert error_code(case) == code


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (("uuid_to_bin", "x"), 1411),
        (("bin_to_uuid", b"x"), 1411),
        (("period_add", 0, 1), 1210),
        (("period_diff", 200813, 1), 1210),
        (("pow", 10, 400), 1690),
        (("exp", 1000), 1690),
        (("cot", 0), 1690),
        (("abs", -9223372036854775808), 1690),
        (("round", 9223372036854775807, -1), 1690),
        (("round", unsigned(18446744073709551615), -1), 1690),
        (("regexp_substr", "a", ""), 3685),
        (("regexp_substr", "a", "a", 5), 3686),
        (("regexp_replace", "a", "a", "$3"), 3686),
        (("left", "a"), 1582),
        (("substring", "a"), 1582),
        (("concat",), 1582),
        (("pi", 1), 1582),
        (("date_format", "a", "b", "c"), 1582),
        (("json_array_append", "[]", "$"), 1582),
        (("no_such_function", 1), 1305),
    ],
)
def test_wrong_calls_are_mysql_errors(case: Case, code: int) -> None:
    assert error_code(case) == code


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (("concat", "ab", "cde"), text(5)),
        (("concat", "ab", b"c"), SqlType(Kind.VARBINARY, length=3)),
        (("left", "abc", 2), text(3)),
        (("length", "abc"), BIGINT),
        (("round", Decimal("99.999"), 2), decimal(5, 2)),
        (("round", Decimal("99.999"), -1), decimal(3, 0)),
        (("truncate", Decimal("99.999"), 2), decimal(4, 2)),
        (("ceil", Decimal("1.5")), BIGINT),
        (("ceil", 1.5), SqlType(Kind.DOUBLE, scale=-1)),
        (("date_add", day("2020-01-01"), 1, Unit("DAY")), DATE),
        (("date_add", day("2020-01-01"), 1, Unit("HOUR")), SqlType(Kind.DATETIME)),
        (("date_add", day("2020-01-01"), 1, Unit("MICROSECOND")), SqlType(Kind.DATETIME, scale=6)),
        (("date_add", moment("2020-01-01 00:00:00.5"), 1, Unit("DAY")), SqlType(Kind.DATETIME, scale=1)),
        (("date_add", clock("10:00:00"), 1, Unit("HOUR")), SqlType(Kind.TIME)),
        (("date_add", "2020-01-01", 1, Unit("DAY")), text(29)),
        (("str_to_date", "x", "%Y-%m-%d"), DATE),
        (("str_to_date", "x", "%H:%i"), SqlType(Kind.TIME)),
        (("str_to_date", "x", "%Y %H.%f"), SqlType(Kind.DATETIME, scale=6)),
        (("unix_timestamp", "2020-01-01 00:00:00.12"), decimal(13, 2)),
        (("unix_timestamp", day("2020-01-01")), BIGINT),
        (("year", day("2020-01-01")), INT),
        (("json_extract", "{}", "$"), JSON),
        (("char", 65), SqlType(Kind.LONGBLOB)),
    ],
)
def test_result_types_are_those_of_mysql(case: Case, expected: SqlType) -> None:
    assert build(*case).type == expected


def test_texts_match_in_the_collation_of_their_column() -> None:
    binary = Column(0, text(10, "utf8mb4_bin"))
    folded = Column(0, text(10, "utf8mb4_0900_ai_ci"))
    for name in ("instr", "find_in_set"):
        for column, expected in ((binary, 0), (folded, 1)):
            arguments = (column, Literal("b", text(1))) if name == "instr" else (Literal("b", text(1)), column)
            assert compile_scalar(call(name, *arguments))(("B",), ()) == expected
    assert compile_scalar(call("regexp_substr", binary, Literal("b", text(1))))(("B",), ()) is None


def test_parameters_of_unknown_type_are_converted_by_their_value() -> None:
    unknown = Column(0, SqlType(Kind.NULL))
    for given in (2, Decimal("2.4"), 2.4, "2.4"):
        assert compile_scalar(call("round", unknown))((given,), ()) == 2.0
    for given, digits in ((255, "FF"), ("a", "61"), (b"\xff", "FF")):
        assert compile_scalar(call("hex", unknown))((given,), ()) == digits
    assert compile_scalar(call("json_valid", unknown))(("[1]",), ()) == 1
    assert compile_scalar(call("date_add", unknown, literal(1), literal(Unit("DAY"))))(("2020-01-31",), ()) == "2020-02-01"
    assert compile_scalar(call("year", unknown))(("2020-01-02",), ()) == 2020
    assert compile_scalar(call("concat", unknown, Literal("x", text(1))))((5,), ()) == "5x"
