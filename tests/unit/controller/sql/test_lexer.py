"""Tokens, comments, statements and the values of literals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sql.text import lexer
from controller.sql.text.lexer import (
    Digits,
    leading_words,
    literal_splitter,
    literal_value,
    split_literals,
    split_statements,
    tokens,
    without_comments,
)
from dataflow.values.types import Value


def texts(sql: str, **modes: bool) -> list[str]:
    return [token.text for token in tokens(sql, **modes)]


def test_quotes_comments_and_operators_are_told_apart() -> None:
    sql = "select `b``c`, 'it''s', \"x\\\"y\" -- c 'q\n from t # '\n where a<=>1 /* ' */ and b->>'$.x'"
    assert texts(sql) == [
        "select", "`b``c`", ",", "'it''s'", ",", '"x\\"y"', "from", "t", "where", "a", "<=>", "1", "and", "b", "->>", "'$.x'",
    ]  # fmt: skip
    assert [part for part in texts("select `b``c`, 1") if part != ","] == ["select", "`b``c`", "1"]


def test_two_dashes_begin_a_comment_only_before_a_blank() -> None:
    assert texts("select 5--3") == ["select", "5", "-", "-", "3"]
    assert texts("select 5-- 3") == ["select", "5"]


def test_versioned_comments_are_opened_up_to_our_version() -> None:
    assert texts("/*!40101 SET NAMES utf8 */") == ["SET", "NAMES", "utf8"]
    assert texts("/*! SET x */") == ["SET", "x"]
    assert texts("a /*!99999 nope */ b /*M! nope */ c /*+ hint */") == ["a", "b", "c"]
    assert without_comments("/*!40101 a '/* no */' */ # x").split() == ["a", "'/*", "no", "*/'"]


def test_names_may_begin_with_digits_and_numbers_may_not_end_in_letters() -> None:
    assert texts("2fa 1e5 1e 0x1F .5 1. t.1a") == ["2fa", "1e5", "1e", "0x1F", ".5", "1.", "t", ".", "1a"]


def test_ansi_quotes_make_double_quotes_names() -> None:
    kinds = [token.kind.value for token in tokens("\"a\" 'b'", ansi_quotes=True)]
    assert kinds == ["quoted", "string"]


def test_a_backslash_is_a_character_without_escapes() -> None:
    assert texts(r"'a\' 'b'", backslash=False) == [r"'a\' 'b'"]
    assert texts(r"'a\', 'b'", backslash=False) == [r"'a\'", ",", "'b'"]


def test_statements_split_at_semicolons_outside_quotes_and_comments() -> None:
    sql = "select ';'; -- ;\n select `;` ; ; /* ; */ ;insert into t values (\"a;\\\";\")"
    assert split_statements(sql) == ["select ';'", "-- ;\n select `;`", 'insert into t values ("a;\\";")']
    assert split_statements("  ") == []
    assert split_statements("select 1;") == ["select 1"]
    assert split_statements(r"select 'a\'; select 2", backslash=False) == [r"select 'a\'", "select 2"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("/* c */ (select 1)", ("SELECT",)),
        ("start transaction", ("START", "TRANSACTION")),
        ("-- x\nBEGIN", ("BEGIN",)),
        ("/*!40101 SET NAMES utf8 */", ("SET", "NAMES")),
        ("", ()),
        ("?", ()),
    ],
)
def test_leading_words_say_what_a_statement_is(sql: str, words: tuple[str, ...]) -> None:
    assert leading_words(sql, 2) == words


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", Decimal("18446744073709551616")),
        ("-9223372036854775808", -9223372036854775808),
        ("-9223372036854775809", Decimal("-9223372036854775809")),
        ("1.50", Decimal("1.50")),
        (".5", Decimal("0.5")),
        ("1e3", 1000.0),
        ("0x4a4", Digits(b"\x04\xa4")),
        ("X'4A'", Digits(b"J")),
        ("b'101'", Digits(b"\x05")),
        ("0b100000001", Digits(b"\x01\x01")),
        ("NULL", None),
        (r"'a\nb\0\Z\\\'\q'", "a\nb\0\x1a\\'q"),
        (r"'100\%\_'", r"100\%\_"),
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        ("'a' 'b'", "ab"),
        ("N'é'", "é"),
        ("_utf8mb4'é'", "é"),
        (r"_binary 'a\0'", b"a\0"),
        ("_binary'\udcff'", b"\xff"),
        ("'a\udcff'", b"a\xff"),
    ],
)
def test_literals_have_mysql_s_values(text: str, value: Value) -> None:
    found = literal_value(text)
    assert (type(found), found) == (type(value), value)


@given(
    st.lists(st.sampled_from([*"'\"(),.0 9xXnNb_a-+$\\\n", "NULL", "12.5e3", "'it''s'", "_binary'a'", ", ", "),("]), max_size=40).map("".join),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_literals_are_the_same_however_many_are_found_at_once(
    sql: str, ansi_quotes: bool, introducers: bool, signs: bool, at_once: int
) -> None:
    splitter = literal_splitter(ansi_quotes, True, introducers, signs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexer, "LITERALS_AT_ONCE", at_once)
        assert split_literals(splitter, sql) == splitter.split(sql)
