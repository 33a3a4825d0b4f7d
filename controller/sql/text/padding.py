"""IN lists of different lengths as one: a list is padded with its last value, up to a power of two.

So the plans of a statement are as many as there are such lengths, not as there are lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from controller.sql.text.lexer import Token

LIST_MAX = 4096
"""Longer lists are padded to a multiple of it."""

_Item = TypeVar("_Item")


def padded_lists(found: Sequence[Token], numbers: dict[int, int]) -> list[tuple[int, int, int]]:
    """IN lists made of parameters alone, as (first parameter, length, padded length)."""
    lists: list[tuple[int, int, int]] = []
    for position, token in enumerate(found):
        if token.upper != "IN" or position + 2 >= len(found) or found[position + 1].text != "(":
            continue
        end = position + 2
        while end + 1 < len(found) and end in numbers and found[end + 1].text == ",":
            end += 2
        if end not in numbers or end + 1 >= len(found) or found[end + 1].text != ")":
            continue
        length = (end - position) // 2
        padded = 1 << (length - 1).bit_length()
        if padded > length and padded <= LIST_MAX:
            lists.append((numbers[position + 2], length, padded))
    return lists


def padded_length(length: int) -> int:
    """How many parameters a long IN list of so many literals is read as."""
    return 1 << (length - 1).bit_length() if length <= LIST_MAX else -(-length // LIST_MAX) * LIST_MAX


def padded(values: list[_Item], lists: Sequence[tuple[int, int, int]]) -> list[_Item]:
    for first, length, padded in reversed(lists):
        last = first + length
        values[last:last] = [values[last - 1]] * (padded - length)
    return values
