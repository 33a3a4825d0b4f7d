"""User variables that a statement assigns to while it runs: `@name := value`; and how far each of its RAND(seed) has come.

Values are numbers, texts, bytes or None; what class they are of is their type, as in MySQL. A
statement that has to be run again starts from what was there before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataflow.values.types import Value

LAST_INSERT_ID = "last_insert_id()"
"""What LAST_INSERT_ID(value) assigns to."""


class UserVariables:
    __slots__ = ("_before", "_first", "changed", "sequences")

    def __init__(self, before: Mapping[str, Value]) -> None:
        self._before = before
        self.changed: dict[str, Value] = {}
        self._first: dict[str, Value] = {}
        self.sequences: dict[int, tuple[int, int]] = {}

    def get(self, name: str) -> Value:
        return self.changed[name] if name in self.changed else self._before.get(name)

    def begin(self) -> None:
        """What has been assigned so far is what the statement starts from."""
        self._first = dict(self.changed)

    def restart(self) -> None:
        self.changed = dict(self._first)
        self.sequences.clear()
