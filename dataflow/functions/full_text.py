"""MATCH … AGAINST, as InnoDB understands it: words of three letters and more, no stopwords.

In natural language mode a row matches if it has one of the words. In boolean mode `+word` must
be there, `-word` must not, `word*` is any word that begins so, `"some words"` stand side by
side, parentheses group, and `>`, `<` and `~` change what a word counts. What a row counts is, for
each word of the query that it has, how often, times the square of log10(rows / rows with the
word). Words are equal as the collation of the columns says.

WITH QUERY EXPANSION asks for the words of all rows that the query finds, besides its own (`fulltext expanded`).

`fulltext words` gives what of the query a row has; those of all rows are the statistics that
`fulltext score` needs. So a score depends on all rows, and no view keeps it; whether a row matches
depends on the row alone.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dataflow.expressions.expression import Expression
from dataflow.functions.registry import function
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import collation_key
from dataflow.values.conversion import Domain
from dataflow.values.short_cache import kept_if_short
from dataflow.values.types import BOOLEAN, DOUBLE, text

LETTERS_MIN, LETTERS_MAX = 3, 84
STOPWORDS = frozenset(
    """a about an are as at be by com de en for from how i in is it la of on or that the this to was what
    when where who will with und www""".split()  # noqa: SIM905
)
EVERYWHERE = math.log10(1.0001)
"""What InnoDB takes for the logarithm where every row has the word."""

_WORD = re.compile(r"\w+(?:'\w+)*")
_TOKEN = re.compile(r'\s*([+\-~<>]*)\s*(?:"([^"]*)"|(\()|(\))|(\w+(?:\'\w+)*)(\*?)|([^\w\s"()+\-~<>]+))')

Key = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """`words` are one word, or several that stand side by side, or none for a group of `terms`."""

    sign: str = ""
    weight: float = 0.0
    words: tuple[str, ...] = ()
    is_prefix: bool = False
    terms: tuple[SearchTerm, ...] = ()


def _is_indexed(word: str) -> bool:
    return LETTERS_MIN <= len(word) <= LETTERS_MAX and word.lower() not in STOPWORDS


def _words(value: str) -> list[str]:
    return [word for word in _WORD.findall(value) if _is_indexed(word)]


@kept_if_short(1024)
def _terms(mode: str, query: str) -> tuple[SearchTerm, ...]:
    if mode != "boolean":
        return tuple(SearchTerm(words=(word,)) for word in dict.fromkeys(_words(query)))
    return tuple(_group(_TOKEN.finditer(query)))


def _group(tokens: Iterator[re.Match[str]]) -> list[SearchTerm]:
    found: list[SearchTerm] = []
    for token in tokens:
        signs, phrase, opened, closed, word, star, _ = token.groups()
        if closed:
            break
        sign = "-" if "-" in signs else "+" if "+" in signs else ""
        weight = signs.count(">") - signs.count("<") - signs.count("~")
        if opened:
            found.append(SearchTerm(sign, weight, terms=tuple(_group(tokens))))
        elif phrase is not None and (words := tuple(_WORD.findall(phrase))):
            found.append(SearchTerm(sign, weight, words))
        elif word and (star or sign == "+" or _is_indexed(word)):  # a stopword that must be there never is
            found.append(SearchTerm(sign, weight, (word,), bool(star)))
    return found


class _Document:
    """The words of a row by the keys under which they are equal."""

    def __init__(self, columns: tuple[str | None, ...], key: Key) -> None:
        self._key = key
        self._texts = [column for column in columns if column]
        self.words = [word for each in self._texts for word in _words(each)]
        self.counts = Counter(map(key, self.words))

    def hits(self, term: SearchTerm) -> set[Any]:
        """The keys of the row's words that the term finds."""
        if term.terms:
            return set().union(*(self.hits(each) for each in term.terms if each.sign != "-"))
        if term.is_prefix:
            length, wanted = len(term.words[0]), self._key(term.words[0])
            return {self._key(word) for word in self.words if self._key(word[:length]) == wanted}
        keys = [self._key(word) for word in term.words]
        if len(keys) > 1 and not self._has_phrase(keys):
            return set()
        return {key for key in keys if key in self.counts}

    def _has_phrase(self, wanted: list[Any]) -> bool:
        for each in self._texts:
            keys = [self._key(word) for word in _WORD.findall(each)]
            if any(keys[place : place + len(wanted)] == wanted for place in range(len(keys))):
                return True
        return False

    def matches(self, terms: tuple[SearchTerm, ...]) -> bool:
        has = {term: self.matches(term.terms) if term.terms else bool(self.hits(term)) for term in terms}
        if any(has[term] if term.sign == "-" else term.sign == "+" and not has[term] for term in terms):
            return False
        return any(has[term] for term in terms if term.sign != "-")


def _keyed(arguments: tuple[Expression, ...], first: int) -> Key:
    return kept_if_short(4096)(collation_key(merged_collation(arguments[first:], "match")))


def _name(key: Any) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)


@function("fulltext matches", arguments=(Domain.TEXT, Domain.TEXT), rest=Domain.TEXT, nulls=True, result=BOOLEAN, specialise=True)
def fulltext_matches(arguments: tuple[Expression, ...]) -> Callable[..., int]:
    key = _keyed(arguments, 2)

    def matches(mode: str, query: str | None, *columns: str | None) -> int:
        return int(query is not None and _Document(columns, key).matches(_terms(mode, query)))

    return matches


@function("fulltext expanded", arguments=(Domain.TEXT, Domain.TEXT), nulls=True, result=text())
def fulltext_expanded(query: str | None, rows: str | None) -> str | None:
    """The query with the texts of some rows, a JSON array, behind it."""
    return None if query is None else " ".join([query, *(json.loads(rows) if rows else ())])


@function(
    "fulltext words", arguments=(Domain.TEXT, Domain.TEXT), rest=Domain.TEXT, nulls=True, result=text(), deterministic=False,
    specialise=True,
)  # fmt: skip
def fulltext_words(arguments: tuple[Expression, ...]) -> Callable[..., str]:
    """Which words of the query, or begun like one, a row has."""
    key = _keyed(arguments, 2)

    def words(mode: str, query: str | None, *columns: str | None) -> str:
        document = _Document(columns, key)
        return " ".join({_name(each) for term in _terms(mode, query or "") for each in document.hits(term)})

    return words


@lru_cache(maxsize=16)
def _weights(statistics: str) -> dict[str, float]:
    """The square of the logarithm for each word; `statistics` are the number of rows and the words of each."""
    count, rows = json.loads(statistics)
    found = Counter(word for words in rows or () for word in words.split())
    return {word: (EVERYWHERE if rows_with == count else math.log10(count / rows_with)) ** 2 for word, rows_with in found.items()}


@function(
    "fulltext score", arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT), rest=Domain.TEXT, nulls=True, result=DOUBLE, specialise=True
)
def fulltext_score(arguments: tuple[Expression, ...]) -> Callable[..., float]:
    key = _keyed(arguments, 3)

    def score(mode: str, query: str | None, statistics: str | None, *columns: str | None) -> float:
        document = _Document(columns, key)
        terms = _terms(mode, query or "")
        if query is None or statistics is None or not document.matches(terms):
            return 0.0
        weights = _weights(statistics)
        total = 0.0
        for term in terms:
            if term.sign != "-" and (hits := document.hits(term)):
                total += term.weight + sum(document.counts[hit] * weights.get(_name(hit), 0.0) for hit in hits)
        return total

    return score
