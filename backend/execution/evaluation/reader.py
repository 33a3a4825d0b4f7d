"""Rows of a node, evaluated from the base tables by keys: an upquery that keeps nothing.

A `Reader` is compiled once for (node, key columns, conditions). Asked with a set of keys it
gives exactly the node's rows that have one of them in those columns and fulfil the
conditions; without key columns, all that fulfil them. Keys and conditions are handed down as
far as they mean the same there. Keys are as in `dataflow.expressions.source`: texts stand as the bytes
by which they compare, and each is kept with the values that made it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from backend.execution.execution import Execution
from backend.execution.pace import PART_ROWS_MIN, parts
from backend.execution.rows import held, held_shared, weighed
from controller.sql.locking import Locking
from dataflow.expressions.compile import compile_predicate
from dataflow.expressions.expression import Expression, columns_of
from dataflow.expressions.source import Key, key_function
from dataflow.functions import call, is_volatile
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Columns
from dataflow.schema import Table
from dataflow.values.types import Row, SqlType, Value

Keys = Mapping[Key, Row]
"""The keys wanted, and the values of the key columns that each stands for."""
Conditions = tuple[Expression, ...]
Predicate = Callable[[Row, Sequence[Value]], bool]


@dataclass(slots=True)
class Run:
    """One evaluation: what it reads from, and what several parts of a plan have in common.

    `memory` has the rows of tables that are not stored. Rows that are read are locked as `locks`
    say. `alone`: this is the only read of a stored table that the statement does.
    """

    execution: Execution
    memory: Mapping[int, Sequence[Row]]
    locks: tuple[Locking, ...] = ()
    alone: bool = False
    rows_max: int | None = None
    """A scan of more rows is `ManyRows`."""
    estimated_rows: Callable[[Table], Awaitable[int]] | None = None
    """About how many rows a table has, so that not so many have to be read to know that there are more."""
    kept: dict[int, list[Row]] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[Value, ...]:
        return self.execution.parameters

    async def epoch(self) -> int:
        """The epoch to read; 0 for now, if there is nothing that the rows must fit to, or they are locked."""
        if self.locks or (self.alone and not self.execution.transaction.repeatable):
            return 0
        return await self.execution.epoch()


class ManyRows(Exception):
    """There are so many rows that they had better be read in another way."""


class Reader(Protocol):
    """`keys` are None if and only if the reader has no key columns."""

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]: ...


@runtime_checkable
class Streaming(Reader, Protocol):
    """A reader that can make its rows while they are taken, so that nobody holds them all."""

    async def stream(self, run: Run, keys: Keys | None) -> Iterator[Sequence[Row]]: ...


class Kept:
    """A reader without key columns that several consumers read: evaluated once in a run."""

    def __init__(self, inner: Reader) -> None:
        self.inner = inner
        self.consumers = 0

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        found = run.kept.get(id(self))
        if found is None:
            found = run.kept[id(self)] = await self.inner.rows(run, None)
        return found


async def taken(reader: Reader, run: Run, keys: Keys | None) -> list[Row]:
    """The rows of a reader for its consumer, which reads it once in a run: what nobody else reads is not kept."""
    if isinstance(reader, Kept) and reader.consumers == 1:
        return await reader.inner.rows(run, None)
    return await reader.rows(run, keys)


async def streamed(reader: Reader, run: Run, keys: Keys | None) -> Iterator[Sequence[Row]]:
    """As `taken`, part by part, for a consumer that does not keep the rows."""
    if isinstance(reader, Kept) and reader.consumers == 1:
        reader = reader.inner
    return await reader.stream(run, keys) if isinstance(reader, Streaming) else parts(await reader.rows(run, keys))


def unwrapped(reader: Reader) -> Reader:
    """What reads the rows that are kept or chosen from."""
    while isinstance(reader, Kept | Chosen):
        reader = reader.inner
    return reader


class Chosen:
    """Rows of a reader that has been given fewer keys and conditions than are wanted."""

    def __init__(
        self,
        inner: Reader,
        inner_columns: Columns,
        columns: Columns,
        types: Sequence[SqlType],
        conditions: Conditions,
    ) -> None:
        self.inner = inner
        self._places = tuple(columns.index(each) for each in inner_columns)
        self._has_columns = bool(inner_columns)
        self._inner_key = key_function(tuple(range(len(inner_columns))), [types[each] for each in inner_columns])
        self._key_of = key_function(columns, types) if columns and inner_columns != columns else None
        self._predicate = predicate_of(conditions)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        below: Keys | None = None
        if self._has_columns:
            assert keys is not None
            below = keys
            if self._key_of is not None:
                places, wanted = self._places, list(keys.values())
                shorter = [tuple([values[place] for place in places]) for part in parts(wanted) for values in part]
                below = {self._inner_key(values): values for part in parts(shorter) for values in part}
        rows = await self.inner.rows(run, below)
        if self._key_of is not None and keys is not None:
            rows = having_keys(rows, self._key_of, keys)
        return fulfilling(rows, self._predicate, run.parameters)


def having_keys(rows: Sequence[Row], key_of: Callable[[Row], Key], keys: Keys) -> list[Row]:
    return held_shared([row for row in part if key_of(row) in keys] for part in parts(rows))


def fulfilling(rows: list[Row], predicate: Predicate | None, parameters: Sequence[Value]) -> list[Row]:
    if predicate is None:
        return rows
    if len(rows) <= PART_ROWS_MIN:
        return [row for row in rows if predicate(row, parameters)]
    return held_shared([row for row in part if predicate(row, parameters)] for part in parts(rows))


def finished(
    given: Iterable[Sequence[Row]],
    parameters: Sequence[Value],
    predicate: Predicate | None,
    project: Callable[[Row, Sequence[Value]], Row] | None = None,
    key_of: Callable[[Row], Key] | None = None,
    keys: Keys | None = None,
) -> Iterator[Sequence[Row]]:
    """The rows that fulfil the predicate, projected, of those the ones that have the keys: as they come."""
    for whole in given:
        for part in parts(whole):
            if predicate is not None:
                part = [row for row in part if predicate(row, parameters)]
            if project is not None:
                part = [project(row, parameters) for row in part]
            if key_of is not None and keys is not None:
                part = [row for row in part if key_of(row) in keys]
            yield part


def projected(rows: list[Row], project: Callable[[Row, Sequence[Value]], Row] | None, parameters: Sequence[Value]) -> list[Row]:
    if project is None:
        return rows
    if len(rows) <= PART_ROWS_MIN:
        return weighed([project(row, parameters) for row in rows])
    return held([project(row, parameters) for row in part] for part in parts(rows))


def predicate_of(conditions: Iterable[Expression]):  # type: ignore[no-untyped-def]
    given = list(conditions)
    if not given:
        return None
    return compile_predicate(given[0] if len(given) == 1 else call("and", *given))


def conditions_of(expression: Expression | None) -> Conditions:
    return conjuncts(expression)


def reads_only(expression: Expression, low: int, high: int) -> bool:
    """Whether the expression reads a row, of it only the positions low ≤ p < high, and leaves nothing to chance."""
    used = columns_of(expression)
    return bool(used) and all(low <= each < high for each in used) and not is_volatile(expression)
