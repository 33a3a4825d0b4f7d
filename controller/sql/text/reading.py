"""The reading of a statement's text; an INSERT of many rows is read part by part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dataflow.values.types import Value

PART_LENGTH = 32 << 10
"""So many characters of rows are read in some milliseconds."""


@dataclass(frozen=True, slots=True)
class Template:
    """`text` has `?` for each parameter; `verb` is its first word in upper case.

    `batch` is (first parameter, parameters per row) where `text` holds one row of any number;
    it is plain if each of its parameters is a column's value as it is.
    """

    text: str
    verb: str
    parameter_count: int = 0
    batch: tuple[int, int] | None = None
    batch_is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement as it came: its template, and the value of each parameter in order.

    `are_bigint` is known of some where all values are integers within BIGINT.
    """

    template: Template
    values: Sequence[Value]
    are_bigint: bool = False


def read_parts(sql: str, head: re.Match[str], read: Callable[[str], Reading]) -> Reading | None:
    """As `read`, of rows after `head` that all have one shape: within one call of `re` no other thread has a turn.

    A part whose rows are nothing but literals ends outside of them, so that is where the next one begins.
    """
    found: Reading | None = None
    values: list[Value] = []
    start = head.end()
    while True:
        end = sql.find("),", start + PART_LENGTH) + 1 or len(sql)
        part = read(head[0] + sql[start:end].lstrip())
        template = part.template
        is_known = found is None or (template == found.template and part.are_bigint == found.are_bigint)
        if not is_known or not template.batch_is_plain or template.batch != (0, template.parameter_count):
            return None
        found = part
        values += part.values
        if end == len(sql):
            return replace(found, values=values)
        start = end + 1
