"""MATCH … AGAINST: whether, and how well, texts have the words that are asked for.

Which rows match is as in MySQL: words of three letters and more that are no stopwords, whole
and in the collation of the columns; in boolean mode `+must`, `-mustn't`, `begin*`, `"a phrase"`
and groups in parentheses. The relevance is simply how often they occur: MySQL weighs words by how
few rows have them, which depends on the whole table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dataflow.collation import collation_key
from dataflow.collation.coercion import merged_collation
from dataflow.expression import Expression
from dataflow.functions.registry import Domain, function
from dataflow.types import DOUBLE

WORD_LENGTH_MIN, WORD_LENGTH_MAX = 3, 84
STOPWORDS = frozenset(
    """a about an are as at be by com de en for from how i in is it la of on or that the this to was what when where
    who will with und the www""".split()  # noqa: SIM905
)

_WORD = re.compile(r"\w+(?:'\w+)*")
_BOOLEAN = re.compile(r'([+\-~<>]*)(?:"([^"]*)"|(\()|(\))|(\w+(?:\'\w+)*\*?))')

Key = Callable[[str], Any]
Words = list[Any]
"""The keys by which the words of a text compare, in its order."""


@dataclass(frozen=True, slots=True)
class _Term:
    """`sign` is `+`, `-` or nothing; one of the others says what is looked for."""

    sign: str
    phrase: tuple[str, ...] = ()
    prefix: str = ""
    group: tuple[_Term, ...] = ()


@function(
    "match_natural", arguments=(Domain.TEXT,), rest=Domain.TEXT, result=DOUBLE, nulls=True, specialise=True
)
def match_natural(arguments: tuple[Expression, ...]) -> Callable[..., float]:
    key = collation_key(merged_collation(arguments[1:], "match"))

    @lru_cache(maxsize=64)
    def wanted(query: str) -> frozenset[Any]:
        return frozenset(key(word) for word in _indexed(query))

    def relevance(query: str | None, *texts: str | None) -> float:
        looked_for = wanted(query or "")
        return float(sum(key(word) in looked_for for text in texts if text for word in _indexed(text)))

    return relevance


@function(
    "match_boolean", arguments=(Domain.TEXT,), rest=Domain.TEXT, result=DOUBLE, nulls=True, specialise=True
)
def match_boolean(arguments: tuple[Expression, ...]) -> Callable[..., float]:
    key = collation_key(merged_collation(arguments[1:], "match"))
    terms = lru_cache(maxsize=64)(_terms)

    def relevance(query: str | None, *texts: str | None) -> float:
        found = [_WORD.findall(text) for text in texts if text]
        return _score(terms(query or ""), found, key)

    return relevance


def _indexed(text: str) -> Iterable[str]:
    """The words that an index of the text would have."""
    for word in _WORD.findall(text):
        if WORD_LENGTH_MIN <= len(word) <= WORD_LENGTH_MAX and word.lower() not in STOPWORDS:
            yield word


def _terms(query: str) -> tuple[_Term, ...]:
    groups: list[tuple[str, list[_Term]]] = [("", [])]
    for match in _BOOLEAN.finditer(query):
        signs, phrase, opens, closes, word = match.groups()
        sign = "-" if "-" in signs else "+" if "+" in signs else ""
        if opens:
            groups.append((sign, []))
        elif closes:
            if len(groups) > 1:
                sign, inner = groups.pop()
                groups[-1][1].append(_Term(sign, group=tuple(inner)))
        elif phrase is not None:
            groups[-1][1].append(_Term(sign, phrase=tuple(_WORD.findall(phrase))))
        elif word.endswith("*"):
            groups[-1][1].append(_Term(sign, prefix=word[:-1]))
        elif next(iter(_indexed(word)), None) is not None:
            groups[-1][1].append(_Term(sign, phrase=(word,)))
    while len(groups) > 1:
        sign, inner = groups.pop()
        groups[-1][1].append(_Term(sign, group=tuple(inner)))
    return tuple(groups[0][1])


def _score(terms: tuple[_Term, ...], texts: list[list[str]], key: Key) -> float:
    """How often the terms occur; 0 if one that must is missing, one that must not is there, or none is."""
    total = 0.0
    for term in terms:
        count = _occurrences(term, texts, key)
        if (term.sign == "+" and not count) or (term.sign == "-" and count):
            return 0.0
        total += count if term.sign != "-" else 0
    return total


def _occurrences(term: _Term, texts: list[list[str]], key: Key) -> float:
    if term.group:
        return _score(term.group, texts, key)
    if term.prefix:
        wanted, length = key(term.prefix), len(term.prefix)
        return float(sum(key(word[:length]) == wanted for words in texts for word in words))
    phrase: Words = [key(word) for word in term.phrase]
    if not phrase:
        return 0.0
    count = 0
    for words in texts:
        keys: Words = [key(word) for word in words]
        count += sum(keys[start : start + len(phrase)] == phrase for start in range(len(keys) - len(phrase) + 1))
    return float(count)
