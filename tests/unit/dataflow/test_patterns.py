"""LIKE and REGEXP under the collations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Column, Literal, Parameter
from dataflow.functions import call
from dataflow.functions.patterns import like_matcher
from dataflow.values.types import Kind, SqlType, text
from tests.mariadb import MariaDB

THEIRS = {
    "utf8mb4_bin": "utf8mb4_bin",
    "utf8mb4_general_ci": "utf8mb4_general_ci",
    "utf8mb4_unicode_ci": "utf8mb4_unicode_ci",
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
}
CHARACTERS = "aAbBéÉßs%_\\ .*[1日ä"
S = Column(0, text(20))


@pytest.fixture(scope="module")
def cursor(mariadb: MariaDB) -> Iterator[Any]:
    connection = mariadb.connect()
    yield connection.cursor()
    connection.close()


@pytest.mark.parametrize("collation", THEIRS)
def test_random_patterns_match_what_mariadbs_match(cursor: Any, collation: str) -> None:
    choose = random.Random(3)

    def word(most: int, alphabet: str) -> str:
        return "".join(choose.choices(alphabet, k=choose.randint(0, most)))

    cases = []
    for _ in range(1500):
        subject = word(5, CHARACTERS)
        pattern = word(4, CHARACTERS + "%%__")
        if choose.random() < 0.5:
            pattern = "".join(choose.choice((c, c, c.swapcase(), "_", "%")) for c in subject)
        cases.append((subject, pattern, choose.choice(("\\", "\\", "a", "|"))))
    wrong = []
    query = "SELECT " + ", ".join([f"%s COLLATE {THEIRS[collation]} LIKE %s ESCAPE %s"] * 50)
    for start in range(0, len(cases), 50):
        batch = cases[start : start + 50]
        cursor.execute(query, [part for case in batch for part in case])
        for (subject, pattern, escape), expected in zip(batch, cursor.fetchone()):
            if like_matcher(pattern, escape, collation)(subject) != bool(expected):
                wrong.append((subject, pattern, escape, expected))
    assert wrong == []


def test_a_pattern_may_be_a_parameter() -> None:
    function = compile_scalar(call("like", S, Parameter(0, text(10))))
    assert [function(("Hello",), (pattern,)) for pattern in ("hel%", "x%", None)] == [1, 0, None]


def test_binary_texts_match_by_byte() -> None:
    blob = Column(0, SqlType(Kind.VARBINARY, 10))
    assert compile_scalar(call("like", blob, Literal("__", text(2))))(("é".encode(),), ()) == 1
    assert compile_scalar(call("like", blob, Literal("A%", text(2))))((b"abc",), ()) == 0


def test_regular_expressions_ignore_case_as_the_collation_does() -> None:
    pattern = Literal("^H.*O$", text(6))
    assert compile_scalar(call("regexp", S, pattern))(("hello",), ()) == 1
    assert compile_scalar(call("regexp", Column(0, text(20, "utf8mb4_bin")), pattern))(("hello",), ()) == 0
    assert compile_scalar(call("regexp_like", S, pattern, Literal("c", text(1))))(("hello",), ()) == 0


def test_a_bad_regular_expression_is_an_error() -> None:
    with pytest.raises(InvalidStatement) as raised:
        compile_scalar(call("regexp", S, Literal("(", text(1))))(("x",), ())
    assert raised.value.condition is Condition.REGULAR_EXPRESSION_PARENTHESIS
