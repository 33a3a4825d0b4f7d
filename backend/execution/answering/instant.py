"""Queries answered at once: the rows of their keys are in shared memory, and nobody has to be asked.

`found` has what was found there, in bytes; where it is None the statement has to be executed
as any other, which fills what was missing. `rows` makes the result of it. The same bytes and
the same values of the parameters in `places_read` make the same result, so whoever keeps
results by these need not notice when rows change.

What was missing can be asked for by `ask`: the worker fills it, and calls back with what `found` would have found.

This is for SELECTs outside of transactions that have written something, and says nothing of
privileges: both are for the caller to see to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from backend.execution.answering.key_parameters import Alike, alike_keys, key_numbers, single_key
from backend.execution.answering.query import CompiledQuery
from backend.execution.answering.viewing import QueryViews
from backend.shared_memory.columns import ColumnReader, Entries
from backend.shared_memory.parts import PartsColumns, ViewReader, columns_of
from backend.shared_memory.reader import NO_ROWS, SharedViewReader
from backend.shared_memory.shared_key import SharedKey
from backend.views.shared_view import SharedViews
from backend.views.view_definition import ViewDefinition
from controller.sql.plan import OutputColumn
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.functions import is_volatile
from dataflow.values.types import INTEGERS, Row, SqlType, Value

Array = np.ndarray[Any, Any]
Parameters = tuple[Value, ...]
Found = bytes | tuple[bytes, ...]
"""The encoded rows of one key, or of each key if they are several, or none."""

_TYPES = frozenset({int, str})
_encode_keys = msgspec.msgpack.Encoder().encode

BIGINT_MAX = (1 << 63) - 1
BYTES_MAX = 1 << 18
"""More than this is not answered at once: it would keep others waiting."""
ENTRIES_BYTES_MAX = 4 << 20
"""As `BYTES_MAX`, where many rows are made at once."""


class KeyOrder(Enum):
    """How a result is ordered, if it is by its keys."""

    GIVEN = auto()
    ASCENDING = auto()
    DESCENDING = auto()


@dataclass(frozen=True, slots=True)
class Cell:
    """The column at `place` of a row, or this number if it is NULL."""

    place: int
    number: int | None = None


class Moment:
    """What a view of one file shows, since this was made."""

    __slots__ = ("_at", "_reader", "_shared")

    def __init__(self, reader: SharedViewReader, shared: SharedViews) -> None:
        self._reader = reader
        self._shared = shared
        self._at = reader.moment

    @property
    def is_now(self) -> bool:
        """Whether it still shows just that."""
        return self._reader.is_at(self._at)

    def count_hit(self) -> None:
        self._shared.hits += 1


class InstantQuery:
    def __init__(self, query: CompiledQuery, views: QueryViews, shared: SharedViews) -> None:
        self._query = query
        self._views = views
        self._shared = shared
        self.columns: tuple[OutputColumn, ...] = query.columns
        self.places_read = query.places_read
        self._numbers = key_numbers(query, views)
        self._number = self._numbers[0] if len(self._numbers) == 1 else None
        self._pick = itemgetter(*self._numbers) if len(self._numbers) > 1 else None
        self._alike = None if self._numbers else alike_keys(query, views)
        self._single = () if self._numbers or self._alike else single_key(query, views)
        self._order = _order(query)
        self._definition: ViewDefinition | None = None
        self._reader: ViewReader | None = None
        self._columns: tuple[ViewReader, ColumnReader | PartsColumns] | None = None
        self._missed: tuple[Parameters, ViewDefinition, list[Row]] | None = None
        """The parameters for which `found` has last found nothing, and the keys that they want."""

    def found(self, parameters: Parameters) -> Found | None:
        """What is kept for the keys that these parameters ask for; None if it is not all there."""
        place = self._number
        if place is None:
            return self._found(parameters)
        reader = self._reader
        if reader is None or reader.is_gone:
            reader = self._find(parameters)
            if reader is None:
                return None
        number: Any = parameters[place]
        found = reader.get_number(number)
        if found is None or len(found) > BYTES_MAX:
            self._shared.misses += 1
            if found is None and self._definition is not None:
                self._missed = (parameters, self._definition, [(number,)])
            return None
        self._shared.hits += 1
        return found

    def _find(self, parameters: Parameters) -> ViewReader | None:
        """The view of a query that has only one, once it is shared."""
        definition = self._definition = self._views.known(parameters)
        self._reader = None if definition is None else self._shared.reader(definition.name)
        return self._reader

    def moment(self, parameters: Parameters) -> Moment | None:
        """What `found` would read now; None if it is not the keys of one file."""
        definition = self._views.known(parameters)
        reader = None if definition is None or definition.order else self._shared.reader(definition.name)
        return Moment(reader, self._shared) if isinstance(reader, SharedViewReader) else None

    def ask(self, parameters: Parameters, then: Callable[[Found | None], None]) -> bool:
        """Ask the worker for what `found` has missed, and have `then` called; False if it has missed nothing that can be asked for."""
        missed, keys = self._missed, self._shared.missed_keys
        if missed is None or missed[0] is not parameters or keys is None:
            return False
        self._missed = None
        keys.ask(missed[1], missed[2], lambda rows: then(_found_of(rows)))
        return True

    def _found_alike(self, alike: Alike, parameters: Parameters) -> Found | None:
        """As `found`, of keys that differ in one column: those without rows are left out."""
        reader = self._reader
        if reader is None or reader.is_gone:
            reader = self._find(parameters)
        if reader is None or self._definition is None:
            return None
        parts = [parameters[place] for place in alike.others]
        numbers: list[Any] = [parameters[place] for place in alike.numbers]
        if len(numbers) > 1:
            numbers = list(dict.fromkeys(numbers))
        found = reader.get_alike(parts, alike.place, numbers)  # type: ignore[arg-type]
        if found is None or None in found:
            self._shared.misses += 1
            before, after = parts[: alike.place], parts[alike.place :]
            self._missed = (parameters, self._definition, [(*before, number, *after) for number in numbers])
            return None
        rows = tuple([each for each in found if each != NO_ROWS])
        if sum(map(len, rows)) > BYTES_MAX:  # type: ignore[arg-type]
            self._shared.misses += 1
            return None
        self._shared.hits += 1
        return rows[0] if len(rows) == 1 else rows  # type: ignore[return-value]

    def _found_single(self, values: list[Value], parameters: Parameters) -> Found | None:
        """As `found`, of one key that has these values."""
        reader = self._reader
        if reader is None or reader.is_gone:
            reader = self._find(parameters)
        definition = self._definition
        if reader is None or definition is None:
            return None
        name = definition.naming.name(values)
        found = None if name is None else reader.get(name)
        if found is None or len(found) > BYTES_MAX:
            self._shared.misses += 1
            if found is None and name is not None:
                self._missed = (parameters, definition, [tuple(values)])
            return None
        self._shared.hits += 1
        return found

    def _found(self, parameters: Parameters) -> Found | None:
        if self._alike is not None:
            return self._found_alike(self._alike, parameters)
        values = [parameters[place] for place in self._single]
        if values and _TYPES.issuperset(map(type, values)):
            return self._found_single(values, parameters)
        query = self._query
        names: Sequence[SharedKey] | None = None
        wanted: list[Row] = []
        if self._pick is not None:
            names = list(dict.fromkeys(self._pick(parameters)))
            if self._order is not None and self._order is not KeyOrder.GIVEN:
                names.sort(reverse=self._order is KeyOrder.DESCENDING)
        else:
            wanted = self._views.keys(query.wanted(parameters) if query.key_columns else None, parameters)
            if not wanted:
                return ()
        definition = self._views.known(parameters)
        if definition is not None and definition.order:
            return self._found_range(definition, wanted, parameters)
        reader = None if definition is None else self._shared.reader(definition.name)
        if definition is None or reader is None:
            return None
        if names is None:
            names = definition.naming.names(_as_they_travel(definition, wanted))
        found = None if names is None else reader.get_many(names)
        if found is None or None in found or sum(map(len, found)) > BYTES_MAX:  # type: ignore[arg-type]
            self._shared.misses += 1
            if names is not None and (found is None or None in found):
                self._missed = (parameters, definition, wanted or [(name,) for name in names])
            return None
        self._shared.hits += 1
        return found[0] if len(found) == 1 else tuple(found)  # type: ignore[arg-type]

    def _found_range(
        self, definition: ViewDefinition, wanted: list[Row], parameters: Parameters
    ) -> Found | None:
        """The rows of an ordered view that are in the range which the parameters make."""
        views = self._views
        part = views.part(definition, parameters)
        if part is None:
            return None
        if part.is_empty:
            return ()
        keys = _encode_keys(wanted)
        while True:
            found = self._shared.lookup(definition, keys, part)
            if found is None or sum(map(len, found)) > BYTES_MAX:
                return None
            more = views.more(definition, found, part, parameters)
            if more is None:
                return found[0] if len(found) == 1 else tuple(found)
            part = more

    @property
    def has_computed_keys(self) -> bool:
        """Whether `found` evaluates anything, which may have something to say."""
        return not self._numbers and self._alike is None and not self._single

    @property
    def cells(self) -> tuple[Cell, ...] | None:
        """What the result is made of, if that is nothing but columns of the node's rows."""
        outputs = self._query.query.outputs
        cells = [found for each in outputs if (found := _cell(each)) is not None]
        return tuple(cells) if self.is_row_by_row and len(cells) == len(outputs) else None

    @property
    def node_types(self) -> tuple[SqlType, ...]:
        return tuple(self._query.query.node.types)

    def is_list(self, count: int) -> bool:
        """Whether the keys are all parameters, of which there are so many, in their order."""
        return self._numbers == tuple(range(count))

    def entries(self, numbers: Array) -> Entries | None:
        """What is kept for these keys, in the order of the result; None if they have to be looked up otherwise."""
        reader = self._reader
        if reader is None or reader.is_gone:
            reader = self._find(())
        if reader is None or self._definition is None or not reader.is_exact:
            return None
        if self._columns is None or self._columns[0] is not reader:
            self._columns = (reader, columns_of(reader, self._definition.types))
        found = self._columns[1].entries(self._ordered(numbers), ENTRIES_BYTES_MAX)
        if found is not None:
            self._shared.hits += found.is_known
            self._shared.misses += not found.is_known
        return found

    def _ordered(self, numbers: Array) -> Array:
        """Each of the keys once, in the order of the result."""
        ordered = np.sort(numbers)
        again = ordered[1:] == ordered[:-1]
        has_again = np.count_nonzero(again)
        if self._order is KeyOrder.GIVEN:
            return np.array(list(dict.fromkeys(numbers.tolist()))) if has_again else numbers
        if has_again:
            ordered = np.delete(ordered, np.flatnonzero(again))
        return ordered if self._order is KeyOrder.ASCENDING else ordered[::-1].copy()

    @property
    def is_row_by_row(self) -> bool:
        """Whether the result of several keys is that of each, one after the other, whatever the parameters."""
        query = self._query.query
        ends = query.limit is not None or query.offset is not None or self._order is None
        across = query.distinct or bool(query.windows) or query.default is not None or ends
        return self._pick is not None and not across and not self.places_read

    @property
    def row_form(self) -> tuple[object, ...]:
        """What the rows of a key are made of and by, where they are the same whatever the parameters."""
        query = self._query.query
        return query.node, query.filter, query.outputs, query.columns

    def rows(self, found: Found, parameters: Parameters) -> tuple[list[Row], int]:
        """The result, and what FOUND_ROWS() is after it."""
        query = self._query
        rows: list[Row] = []
        if found:
            definition = self._definition or self._views.known(parameters)
            assert definition is not None, "it was there when the keys were looked up"
            rows = self._views.decoded(definition, (found,) if isinstance(found, bytes) else found, parameters)
        return query.finished(rows, parameters)


def instant_query(query: CompiledQuery, shared: SharedViews | None) -> InstantQuery | None:
    """None if the query always has to be executed."""
    if shared is None or query.views is None or query.query.prior:
        return None
    if any(map(is_volatile, query.finishing)):
        return None
    return InstantQuery(query, query.views, shared)


def _found_of(rows: list[bytes] | None) -> Found | None:
    if rows is None or sum(map(len, rows)) > BYTES_MAX:
        return None
    return rows[0] if len(rows) == 1 else tuple(rows)


def _as_they_travel(definition: ViewDefinition, keys: list[Row]) -> list[Row]:
    """Keys as a worker would see them."""
    for values in keys:
        for value in values:
            if type(value) is not int and type(value) is not str:
                return definition.decode_keys(_encode_keys(keys))
    return keys


def _order(query: CompiledQuery) -> KeyOrder | None:
    """None if it takes more than the keys to tell."""
    items = query.query.order_by
    if not items:
        return KeyOrder.GIVEN
    [key, *others] = query.key_columns or (-1,)
    if others or not all(isinstance(item.expression, Column) and item.expression.index == key for item in items):
        return None
    return KeyOrder.DESCENDING if items[0].descending else KeyOrder.ASCENDING


def _cell(output: Expression) -> Cell | None:
    match output:
        case Column(index=place):
            return Cell(place)
        case Call(function="coalesce", arguments=(Column(index=place, type=kind), Literal(value=int(number)))):
            return Cell(place, number) if kind.kind in INTEGERS and 0 <= number <= BIGINT_MAX else None
    return None
