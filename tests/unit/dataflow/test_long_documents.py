"""Long documents are read, written and compared in slices, with the same results."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow import breath
from dataflow.functions.json_reading import contains, json_pretty, overlaps
from dataflow.values import documents
from dataflow.values.documents import NotJson, dumps, loads
from dataflow.values.long_values import WINDOW

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture
def breaths() -> Iterator[list[None]]:
    taken: list[None] = []
    before = breath._Breath.take
    breath.breathe_by(lambda: taken.append(None))
    yield taken
    breath.breathe_by(before)


def read(text: str) -> tuple[str, object]:
    try:
        return "", loads(text)
    except NotJson as error:
        return error.reason, error.position


@given(VALUES, st.integers(0, 40), st.sampled_from(["", "]", "}", ",", '"', "\\", "nul", "1e999", "\\ud800"]))
def test_both_parsers_agree(value: object, at: int, put_in: str) -> None:
    text = json.dumps(value)
    text = text[:at] + put_in + text[at:]
    short, (documents.LONG_DOCUMENT, before) = read(text), (0, documents.LONG_DOCUMENT)
    try:
        assert read(text) == short
    finally:
        documents.LONG_DOCUMENT = before


@pytest.mark.parametrize("item", ['"abcd"', "null", "12.5", '{"a": 1}', "[]"])
def test_reading_and_writing_a_long_document_breathes(item: str, breaths: list[None]) -> None:
    count = documents.LONG_DOCUMENT // len(item)
    text = f"[{', '.join([item] * count)}]"
    found = loads(text)
    assert len(breaths) >= count
    del breaths[:]
    assert dumps(found) == text and len(breaths) >= count
    del breaths[:]
    json_pretty(text, bytes_max=1 << 30)
    assert len(breaths) >= 3 * count


def test_an_object_with_many_keys_is_sorted_in_parts(breaths: list[None]) -> None:
    keys = [f"{number * 7919 % 30_011}" for number in range(30_000)]
    found = loads(json.dumps(dict.fromkeys(keys)))
    assert list(found) == sorted(keys, key=lambda key: (len(key), key)) and len(found) > 3 * WINDOW
    assert len(breaths) >= len(keys)


def test_documents_that_are_compared_item_by_item_breathe(breaths: list[None]) -> None:
    left, right = list(range(300)), [f"{number}" for number in range(300)]
    assert not overlaps(left, right) and not contains(left, right[:1])
    assert len(breaths) >= 300 * 300


def test_a_long_string_is_quoted_in_parts(breaths: list[None]) -> None:
    value = 'é"\n\\' * WINDOW
    assert dumps(value) == json.dumps(value, ensure_ascii=False) and len(breaths) >= 3


def test_a_long_document_nests_a_hundred_levels() -> None:
    long = " " * documents.LONG_DOCUMENT
    assert loads("[" * 100 + long + "]" * 100)
    with pytest.raises(NotJson, match="maximum depth"):
        loads("[" * 101 + long + "]" * 101)
