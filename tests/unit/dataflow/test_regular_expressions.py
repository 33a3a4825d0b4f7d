"""Regular expressions: linear or ended, the same from both engines, MySQL's errors, MariaDB's answers where they agree."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from dataflow.errors import InvalidStatement
from dataflow.functions.patterns import like_matcher
from dataflow.values.regular_expressions import RegularExpression, compiled
from tests.mariadb import MariaDB

CASELESS, EXACT = "utf8mb4_0900_ai_ci", "utf8mb4_bin"


def processor_seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|aa)+$", "(a|a?)+b", "^(\\w+\\s?)*$", "a*a*a*a*a*a*c", "(.*)(.*)(.*)(.*)(.*)x"])
def test_what_makes_other_engines_backtrack_is_linear(pattern: str) -> None:
    expression = compiled(pattern, CASELESS)
    assert processor_seconds(lambda: expression.is_in("a" * 100_000 + "!")) < 0.5


@pytest.mark.parametrize("pattern", ["^(?:a+)+(?!x)$", "(a|aa)+\\1!!?$(?<!x)\\n", "(?<=a)(a|aa)+$"])
def test_what_must_backtrack_is_ended(pattern: str) -> None:
    expression = RegularExpression(pattern, False, False, False, False)

    def search() -> None:
        with pytest.raises(InvalidStatement) as raised:
            expression.is_in("a" * 5_000 + "!")
        assert raised.value.condition.code == 3699

    assert processor_seconds(search) < 1


def test_many_matches_of_one_text_are_ended() -> None:
    expression = compiled("a(.*b)?", EXACT)

    def search() -> None:
        with pytest.raises(InvalidStatement) as raised:
            for _ in expression.matches("a" * 300_000):
                pass
        assert raised.value.condition.code == 3699

    assert processor_seconds(search) < 15


def test_a_long_text_is_not_given_to_an_engine_that_keeps_its_way_back() -> None:
    with pytest.raises(InvalidStatement) as raised:
        compiled("(?=a)b", EXACT).is_in("a" * (5 << 20))
    assert raised.value.condition.code == 3698


@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%a%a%b", "%a_a%a_a%a_a%a_a%c_", "_%" * 30 + "b"])
def test_like_is_linear(pattern: str) -> None:
    matches = like_matcher(pattern, "\\", EXACT)
    assert processor_seconds(lambda: matches("a" * 20_000)) < 0.5
    assert not matches("a" * 20_000)


ERRORS = [
    ("", 3685), ("[[:nothing:]]", 3685), ("\\p{nothing}", 3685), ("*", 3688), ("a|*", 3688), ("a**", 3688), ("^+", 3688),
    ("\\y", 3689), ("a\\", 3689), ("\\x{110000}", 3689), ("(", 3691), ("a)", 3691), ("(?:a", 3691), ("a{", 3692), ("a{x}", 3692),
    ("a{,3}", 3692), ("a{3,1}", 3693), ("\\1", 3694), ("(a)\\2", 3694), ("\\k<a>", 3694), ("[a", 3696), ("[", 3696),
    ("[z-a]", 3697), ("a" * 20_000, 3700), ("(?<1>a)", 3887), ("(?y)a", 3900),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "code"), ERRORS)
def test_a_bad_pattern_gets_mysqls_error(pattern: str, code: int) -> None:
    with pytest.raises(InvalidStatement) as raised:
        compiled(pattern, CASELESS)
    assert raised.value.condition.code == code


def test_where_the_syntax_error_is() -> None:
    with pytest.raises(InvalidStatement, match=r"on line 2, character 3\."):
        compiled("a\nb**", EXACT)


ANSWERS = [
    ("é1", "^\\w\\d$", "", True), ("日本", "^\\w+$", "", True), ("٣", "\\d", "", True), ("\u2003", "^\\s$", "", True),
    ("ÉTÉ", "été", "", True), ("ÉTÉ", "été", "c", False), ("a\nb", "a.b", "", False), ("a\nb", "a.b", "n", True),
    ("a\rb", "a.b", "", False), ("a\rb", "a.b", "u", True), ("foo\nbar", "^bar", "", False), ("foo\nbar", "^bar", "m", True),
    ("foo\rbar", "^bar$", "m", True), ("foo\rbar", "^bar$", "mu", False), ("foo\n", "foo$", "", True), ("foo\n\n", "foo$", "", False),
    ("foo\r\n", "foo$", "", True), ("foo\r\n", "foo\\r$", "", False), ("foo\n", "foo\\z", "", False), ("foo\n", "^$", "m", False),
    ("a b", "a\\b", "", True), ("aéb", "a\\b", "", False), ("abab", "(ab)\\1", "", True), ("abc", "a(?=b)", "", True),
    ("price: 5", "(?<=: )\\d", "", True), ("aab", "a++ab", "", False), ("aab", "(?>a+)b", "", True), ("xyz", "[[a-z]--[aeiou]]{3}", "", True),
    ("aei", "[[a-z]&&[^aeiou]]", "", False), ("a]b", "[]]", "", True), ("a-b", "[a-]-", "", True), ("word", "[[:<:]]word[[:>:]]", "", True),
    ("$", "[[:punct:]]", "", False), ("!", "[[:punct:]]", "", True), ("aB", "(?i)ab", "c", True), ("aBC", "(?:a(?i)b)c", "c", False),
    ("a.b", "\\Qa.b\\E", "", True), ("axb", "\\Qa.b\\E", "", False), ("ab", "a #comment\nb", "", False), ("ab", "(?x)a #comment\nb", "", True),
    ("a" * 2000, "^a{2000}$", "", True), ("tab\there", "\\h", "", True), ("A", "\\x41", "c", True), ("é", "\\u00e9", "", True), ("Σ", "\\p{Greek}", "", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern", "match_type", "expected"), ANSWERS)
def test_what_icu_answers(text: str, pattern: str, match_type: str, expected: bool) -> None:
    expression = compiled(pattern, CASELESS, match_type)
    assert expression.is_in(text) is expected
    assert (next(expression._backtracked(text, 0), None) is not None) is expected, "the other engine agrees"


PIECES = ["a", "b", "é", ".", "[ab]", "[^a]", "\\w", "\\s", "(a|b)", "(?:ab)?", "a*", "b+?", "a{2}", "^", "$", "\\b", "|", "[[:alpha:]]", " "]


def test_both_engines_find_the_same() -> None:
    choose = random.Random(7)
    for _ in range(1500):
        pattern = "".join(choose.choices(PIECES, k=choose.randint(1, 5)))
        text = "".join(choose.choices("abéB \n", k=choose.randint(0, 8)))
        match_type = choose.choice(["", "c", "m", "n", "mu"])
        expression = compiled(pattern, CASELESS, match_type)
        found = [(match.start(), match.end()) for match in expression.matches(text)]
        assert found == [(match.start(), match.end()) for match in expression._backtracked(text, 0)], (pattern, text, match_type)


def test_mariadb_finds_the_same(mariadb: MariaDB) -> None:
    choose = random.Random(8)
    cases = [
        ("".join(choose.choices("abéB ", k=choose.randint(0, 8))), "".join(choose.choices(PIECES, k=choose.randint(1, 5))))
        for _ in range(1000)
    ]
    connection = mariadb.connect()
    with connection, connection.cursor() as cursor:
        for start in range(0, len(cases), 50):
            batch = cases[start : start + 50]
            arguments: list[Any] = [part for case in batch for part in case]
            cursor.execute("SELECT " + ", ".join(["%s COLLATE utf8mb4_general_ci REGEXP %s"] * len(batch)), arguments)
            row = cursor.fetchone()
            assert row is not None
            for (text, pattern), expected in zip(batch, row):
                assert compiled(pattern, CASELESS).is_in(text) == bool(expected), (text, pattern)


def test_bytes_that_are_no_characters_match_what_any_character_does() -> None:
    assert compiled("h.r", "utf8mb4_bin").is_in("h\udce4r")
    assert not compiled("h[[:alpha:]]r", "utf8mb4_bin").is_in("h\udce4r")
    assert [match.start() for match in compiled("(?<=h).", "utf8mb4_bin").matches("h\udce4r")] == [1]
