"""Texts that are read without their template: all but their numbers and strings was read before.

A *shape* is what a text has around its plain literals, and which of these are numbers: whole numbers of up to 18 digits, strings of up to 255 ASCII
characters without quotes and backslashes, and one long list of numbers, of which the shape has the padded length. Two texts
of one shape are one template with other parameters, of the same types, if that is so of one of them: if its literals are its
template's parameters, all of them (`ReadText.is_read_as`). What is not plain stays in the shape, with its quotes, and such shapes are never learnt.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from controller.sql.text.number_runs import is_plain, number_list
from controller.sql.text.padding import padded_length
from dataflow.values.types import Value

TEXT_BYTES_MAX = 2 << 10
"""Longer texts have no shape, not counting the list."""
LITERALS_MAX = 64

Array = np.ndarray[Any, Any]
Shape = tuple[tuple[bytes, ...], tuple[type, ...], int, bytes]
"""What is between literals, int or str for each of them, the padded length of the list after them or 0, and what follows it."""

_LITERAL = re.compile(
    rb"([0-9'](?<![\w$@.'\"`\\].)(?:(?<=[0-9])[0-9]{0,17}|(?<=')[^'\\\0]{0,255}')(?![\w$.'\"`]))", re.DOTALL
)
_INTRODUCED = re.compile(rb"(?<![\w$])_\w+\s*$")


class ReadText:
    """A text's shape and its literals: those before the list, and the list's numbers."""

    __slots__ = ("_head", "numbers", "shape")

    def __init__(self, shape: Shape, head: list[Value], numbers: Array | None) -> None:
        self.shape = shape
        self._head = head
        self.numbers = numbers

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The list is padded with its last number."""
        if self.numbers is None:
            return tuple(self._head)
        numbers = self.numbers.tolist()
        return (*self._head, *numbers, *numbers[-1:] * (self.shape[2] - len(numbers)))

    def is_read_as(self, parameters: tuple[Value, ...]) -> bool:
        """Whether all texts of this shape are read alike, if this one is read as these parameters."""
        pieces, _, _, tail = self.shape
        if len(pieces) > LITERALS_MAX or not is_plain(b" ".join([*pieces, tail])) or any(map(_INTRODUCED.search, pieces)):
            return False
        return parameters == self.parameters and list(map(type, parameters)) == list(map(type, self.parameters))


def read_text(text: bytes) -> ReadText | None:
    """None if the text is too long, or not plain."""
    listed = number_list(text)
    if listed is not None and listed[0][-4:].rstrip()[-3:].upper() not in (b" IN", b"\nIN"):
        listed = None
    head, numbers, tail = listed or (text, None, b"")
    if len(head) > TEXT_BYTES_MAX or not head.isascii():
        return None
    pieces = _LITERAL.split(head)
    values: list[Value] = [int(each) if each[0] != 0x27 else each[1:-1].decode() for each in pieces[1::2]]
    padded = 0 if numbers is None else padded_length(len(numbers))
    return ReadText((tuple(pieces[::2]), tuple(map(type, values)), padded, tail), values, numbers)
