"""Long strings are read a window at a time: as everything else is, and without holding up other threads."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import Any

import pytest

from controller.sql.text import lexer, long_strings
from controller.sql.text.template import TemplateReader
from dataflow.errors import InvalidStatement

PAIRS = {True: ["\\n", "\\'", '\\"', "\\\\", "''", "\\0", "\\%"], False: ["''", "\\"]}
OTHERS = ["a", "bc", "é", "😀", '"', "#", "-- ", "/*", "*/", ";", " ", "\udc80", "0x12", "`"]
WINDOW = 16
HELD_S_MAX = 0.1


def string(chance: random.Random, backslash: bool) -> str:
    inside = "".join(chance.choices(PAIRS[backslash] + OTHERS, k=chance.randint(0, 60)))
    return f"'{inside}'"


def value(chance: random.Random, backslash: bool) -> str:
    text = string(chance, backslash)
    return chance.choice([
        text, f"{text} {string(chance, backslash)}", f"_binary{text}", f"x'{'aB09' * chance.randint(0, 20)}'", f"0x{'1f7' * chance.randint(1, 30)}",
        f"b'{'011' * chance.randint(1, 30)}'", "17", "NULL", f"/* {'it' * chance.randint(0, 30)}'s */ 3", f"-- '\n{text}", f"/*!40101 {text} */", "0xZ", "a.0x12",
    ])  # fmt: skip


def readings(sql: str, ansi_quotes: bool, backslash: bool) -> list[Any]:
    return [
        list(lexer.tokens(sql, ansi_quotes, backslash)), lexer.without_comments(sql, backslash),
        lexer.split_statements(sql, backslash), TemplateReader(ansi_quotes, backslash).read(sql),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_texts_in_windows_are_read_as_in_one_go(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        ansi_quotes, backslash = chance.random() < 0.3, chance.random() < 0.7
        values = ", ".join(value(chance, backslash) for _ in range(chance.randint(1, 4)))
        sql = chance.choice(["INSERT INTO t VALUES ({})", "SELECT {} AS a; SELECT {} FROM t WHERE a IN ({})", "UPDATE t SET a = ({})"]).replace("{}", values)
        expected = readings(sql, ansi_quotes, backslash)
        with monkeypatch.context() as patch:
            patch.setattr(long_strings, "WINDOW", WINDOW)
            patch.setattr(long_strings, "LONG", WINDOW + 3)
            patch.setattr(lexer, "LONG", WINDOW + 3)
            assert readings(sql, ansi_quotes, backslash) == expected, sql


def test_a_long_string_that_is_not_closed_is_an_error_at_once() -> None:
    """Every quote in it might begin another one that is not closed."""
    with pytest.raises(InvalidStatement):
        TemplateReader().read("SELECT '" + "\\'" * 500_000)


@pytest.mark.parametrize("inside", ["\\n", "''", "x", "é", "\\\\"])
def test_nobody_waits_for_a_long_string(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two breaths little is computed, in processor time, so a busy machine does not count."""
    TemplateReader().read(f"INSERT INTO t VALUES (1, '{inside * 70_000}')")  # patterns are compiled once
    breaths = [time.thread_time()]
    monkeypatch.setattr(long_strings, "breathe", lambda: breaths.append(time.thread_time()))
    TemplateReader().read(f"INSERT INTO t VALUES (1, '{inside * 3_000_000}')")
    breaths.append(time.thread_time())
    assert max(later - earlier for earlier, later in pairwise(breaths)) < HELD_S_MAX
