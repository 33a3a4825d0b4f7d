"""Sorts in buckets are exactly those of `list.sort`, also of rows that are equal."""

from __future__ import annotations

import random

import pytest

from backend.execution.answering.sorting import SHORT, order_of, sort_rows


@pytest.mark.parametrize("descending", (False, True))
@pytest.mark.parametrize("distinct", (1, 2, 50, 10**9))
@pytest.mark.parametrize("count", (0, 1, SHORT, SHORT + 1, 20 * SHORT))
def test_sorted_like_list_sort(count: int, distinct: int, descending: bool) -> None:
    chance = random.Random(count + distinct)
    rows = [(chance.randrange(distinct), place) for place in range(count)]
    wanted = sorted(rows, key=lambda row: row[0], reverse=descending)
    keys = [row[0] for row in rows]
    assert [rows[place] for place in order_of(keys, descending)] == wanted
    sort_rows(rows, lambda row: row[0], descending)
    assert rows == wanted
