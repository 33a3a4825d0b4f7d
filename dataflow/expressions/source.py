"""Generated functions: Python source written line by line, compiled once, its text kept.

Whatever the code refers to (indexes, constants, other functions) is bound by name in the
function's own namespace. Keys of rows are written here too, so that every index agrees on
them: a key of one column is its value, of several a tuple, of none the empty tuple; texts
stand as the bytes by which their collation compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from types import CodeType
from typing import Any

from dataflow.expressions.compile import Emitter
from dataflow.expressions.expression import Expression
from dataflow.plan.node import Columns
from dataflow.values.collation.keys import collation_key
from dataflow.values.types import STRINGS, Kind, Row, SqlType, Value

Function = Callable[..., Any]
Key = Any
"""A value, or a tuple of values, as an index has it."""

_EXACT = frozenset({"utf8mb4_0900_bin", "binary"})


def text_key(kind: SqlType) -> Callable[[str], bytes] | None:
    """How texts of this type compare, or None where equal values are equal as they are."""
    if kind.kind not in STRINGS or kind.kind is Kind.JSON or kind.collation is None or kind.collation in _EXACT:
        return None
    return collation_key(kind.collation)


def value_key(order: Sequence[int], types: Sequence[SqlType]) -> Callable[[Sequence[Value]], Key]:
    """The function from values to the key that stands for those at the places of `order` in an index over columns of `types`."""
    texts = [text_key(kind) for kind in types]
    if order and not any(texts):
        return itemgetter(*order)
    parts = list(zip(order, texts, strict=True))

    def key(values: Sequence[Value]) -> Key:
        found = [each if (each := values[place]) is None or text is None else text(each) for place, text in parts]  # type: ignore[arg-type]
        return found[0] if len(found) == 1 else tuple(found)

    return key


class RowColumns(dict[int, str]):
    """Reads any position from the variable `row`."""

    def __missing__(self, position: int) -> str:
        return f"row[{position}]"


class FunctionSource:
    """One function under construction."""

    def __init__(self, name: str, parameters: str) -> None:
        self.name = name
        self._parameters = parameters
        self._lines: list[str] = []
        self._depth = 1
        self._count = 0
        self._emitter = Emitter()

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        self.line(text)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def open(self, text: str) -> None:
        """A block that stays open until `close`."""
        self.line(text)
        self._depth += 1

    @property
    def depth(self) -> int:
        return self._depth

    def close(self, depth: int) -> None:
        self._depth = depth

    def constant(self, value: object) -> str:
        return self._emitter.constant(value)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count}"

    def value(self, expression: Expression, columns: Mapping[int, str]) -> str:
        self._emitter.columns = columns
        return self._emitter.output(expression)

    def condition(self, expression: Expression, columns: Mapping[int, str]) -> str:
        self._emitter.columns = columns
        return self._emitter.truth(expression)

    def part(self, source: str, kind: SqlType) -> str:
        """`source`, a column's value, as part of a key."""
        function = text_key(kind)
        if function is None:
            return source
        return f"(None if {source} is None else {self.constant(function)}({source}))"

    def key(self, sources: Sequence[str], types: Sequence[SqlType]) -> str:
        parts = [self.part(source, kind) for source, kind in zip(sources, types, strict=True)]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def row_key(self, row: str, columns: Columns, types: Sequence[SqlType]) -> str:
        return self.key([f"{row}[{c}]" for c in columns], [types[c] for c in columns])

    @property
    def text(self) -> str:
        return "\n".join([f"def {self.name}({self._parameters}):", *(self._lines or ["    pass"])])

    def build(self) -> Function:
        namespace = self._emitter.namespace
        text = self.text
        exec(_compiled(text, self.name), namespace)
        function: Function = namespace[self.name]
        function.__dict__["source"] = text
        return function


@lru_cache(maxsize=1024)
def _compiled(text: str, name: str) -> CodeType:
    """Queries of one shape differ in what their names are bound to, not in their text."""
    return compile(text, f"<{name}>", "exec")


def key_function(columns: Columns, types: Sequence[SqlType]) -> Callable[[Row], Key]:
    """The function that gives a row's key."""
    source = FunctionSource("row_key", "row")
    source.line(f"return {source.row_key('row', columns, types)}")
    return source.build()
