"""Functions give the answers that MariaDB gives, except where MySQL 8 is known to differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from dataflow.values.documents import NotJson, loads
from dataflow.values.types import Kind
from tests.mariadb import MariaDB
from tests.unit.dataflow.functions import date_cases, json_cases, numeric_cases, random_cases, text_cases
from tests.unit.dataflow.functions.oracle import Answer, Case, Oracle, ours, sql

RANDOM_CASES = 4000


@pytest.fixture(scope="module")
def oracle(mariadb: MariaDB) -> Iterator[Oracle]:
    with mariadb.connect(use_unicode=False, conv={}) as connection:
        yield Oracle(connection)


def disagreements(oracle: Oracle, cases: Iterable[Case]) -> list[str]:
    """SQL, our answer and MariaDB's, of each case where the two are not the same."""
    found = []
    for case in cases:
        answer, kind = ours(case)
        expected = oracle.answer(case)
        if kind is not None and kind.kind is Kind.JSON:
            same = document(answer) == document(expected)
        else:
            same = answer == expected
        if not same:
            found.append(f"{sql(case)} is {answer!r}, in MariaDB {expected!r}")
    return found


def document(answer: Answer) -> object:
    """By value: the order and spacing of a document's text is MySQL's own."""
    try:
        return loads(answer.decode()) if isinstance(answer, bytes) else answer
    except NotJson:
        return answer


TABLES = {
    "text": (text_cases.CASES, text_cases.DIFFERENCES),
    "numeric": (numeric_cases.CASES, numeric_cases.DIFFERENCES),
    "dates": (date_cases.CASES, date_cases.DIFFERENCES),
    "json": (json_cases.CASES, json_cases.DIFFERENCES | dict.fromkeys(json_cases.ERRORS, "an error in MySQL")),
}


@pytest.mark.parametrize("name", TABLES)
def test_chosen_calls_answer_like_mariadb(oracle: Oracle, name: str) -> None:
    cases, differences = TABLES[name]
    assert disagreements(oracle, (case for case in cases if case not in differences)) == []


@pytest.mark.parametrize("name", TABLES)
def test_known_differences_are_still_differences(oracle: Oracle, name: str) -> None:
    _, differences = TABLES[name]
    known = [case for case, reason in differences.items() if reason != "an error in MySQL"]
    assert len(disagreements(oracle, known)) == len(known)


@pytest.mark.parametrize("seed", range(2))
def test_random_calls_answer_like_mariadb(oracle: Oracle, seed: int) -> None:
    assert disagreements(oracle, random_cases.cases(seed, RANDOM_CASES)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_many_random_calls_answer_like_mariadb(oracle: Oracle, seed: int) -> None:
    assert disagreements(oracle, random_cases.cases(seed, RANDOM_CASES * 5)) == []
