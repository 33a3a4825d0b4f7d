"""Groups of rows and their partial aggregates, all as columns of numbers; groups of groups are made by the same code.

A function's state is a few numbers that are added, or of which the least or the greatest is kept. Sums are kept as two numbers,
their upper bits and their lower 32, so that no sum of 2³¹ parts leaves 64 bits. Texts are numbered. Those that their collation calls equal
are put together in the end, and the least of a group stands for it. Groups come in the order of their first rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow.aggregates.accumulator import exact_average, exact_sum
from dataflow.breath import in_parts
from dataflow.columns.expressions import Columns, Evaluate, compiled
from dataflow.columns.vector import (
    Array,
    GaveUp,
    NumberVector,
    Vector,
    factorized,
    is_exact,
    is_number,
    scaled,
    values_of,
)
from dataflow.expressions.expression import Call, Column, Expression
from dataflow.expressions.rewriting import composed
from dataflow.expressions.source import text_key
from dataflow.plan.node import Aggregate, AggregateFunction, Join
from dataflow.values.inference import is_unsettled
from dataflow.values.types import BLOBS, INTEGERS, STRINGS, Kind, Row, SqlType, Value

_LEAST, _MOST = -(2**63), 2**63 - 1
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1
_NEUTRAL = {np.add: 0, np.minimum: _MOST, np.maximum: _LEAST}
GROUPS_PENDING = 1 << 18
"""So many groups of parts of the rows are put together at once."""
TEXT_BYTES_MAX = 64 << 20
"""Of the different texts that groups are made of, and of the texts of all groups that go out at once; nobody counts their memory."""


@dataclass(frozen=True, slots=True)
class _Function:
    """One aggregate: its argument, how the numbers of its state are put together, and its value."""

    argument: Evaluate | None
    state: Callable[[NumberVector | None, int], list[Array]]
    combine: tuple[Any, ...]
    result: Callable[..., Value]


class Grouped:
    """The aggregate of a table's rows that pass a filter, bit by bit. `of` gives None if it has no exact form by column."""

    def __init__(self, types: Sequence[SqlType], keys: Sequence[Evaluate], functions: Sequence[_Function]) -> None:
        self._types = types
        self._keys = keys
        self._functions = functions
        self._combine = (np.add, *(each for function in functions for each in function.combine))
        self._texts = [None if is_number(kind) else _Texts(kind) for kind in types]
        self._pending: list[_Groups] = []
        self._pending_count = 0
        self._merged_count = 0

    @classmethod
    def of(cls, node: Aggregate) -> Grouped | None:
        outputs = node.input.outputs if isinstance(node.input, Join) else None
        types = [node.input.types[each] for each in node.group]
        keys = [compiled(composed(Column(each, node.input.types[each]), outputs)) for each in node.group]
        functions = [_function(each, outputs) for each in node.functions]
        if not all(map(_is_groupable, types)) or None in keys or None in functions:
            return None
        return cls(types, [each for each in keys if each], [each for each in functions if each])

    @property
    def count(self) -> int:
        """How many groups are held, at most."""
        return self._pending_count

    def add(self, columns: Columns) -> None:
        """Take rows in."""
        if not columns.count:
            return
        keys = [self._numbered(place, _full(key(columns), columns.count)) for place, key in enumerate(self._keys)]
        if sum(texts.size for texts in self._texts if texts is not None) > TEXT_BYTES_MAX:
            raise GaveUp("many long texts")
        states = [np.ones(columns.count, np.int64)]
        for function in self._functions:
            argument = None if function.argument is None else _full(function.argument(columns), columns.count)
            assert argument is None or isinstance(argument, NumberVector)
            states += function.state(argument, columns.count)
        self._take(_grouped(keys, states, self._combine))

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take groups in that another has given out."""
        width = len(self._types)
        keys = [self._numbered(place, _from_arrow(batch.column(place), self._texts[place])) for place in range(width)]
        states = [batch.column(place).to_numpy() for place in range(width, batch.num_columns)]
        self._take(_Groups(keys, states))

    def batch(self) -> pa.RecordBatch | None:
        """The groups, as `add_batch` takes them; nothing is held any more."""
        groups = self._all()
        self._pending, self._pending_count, self._merged_count = [], 0, 0
        if groups is None:
            return None
        for each, texts in zip(groups.keys, self._texts):
            if texts is not None and texts.shown_bytes(each) > TEXT_BYTES_MAX:
                raise GaveUp("long texts of many groups")
        shown = [pa.array(each.values, mask=each.missing) if texts is None else texts.shown(each) for each, texts in zip(groups.keys, self._texts)]
        return pa.RecordBatch.from_arrays([*shown, *map(pa.array, groups.states)], [str(n) for n in range(len(shown) + len(groups.states))])

    def rows(self) -> list[Row]:
        """The aggregate's rows. Without group columns there is one, whatever was taken in."""
        groups = self._classes(self._all())
        if groups is None:
            return [] if self._types else [tuple(each.result(*(map(_NEUTRAL.__getitem__, each.combine or (np.add,)))) for each in self._functions)]
        shown = [each if texts is None else texts.shown(each) for each, texts in zip(groups.keys, self._texts)]
        rows: list[Row] = []
        for places in in_parts(range(len(groups.states[0]))):
            part = slice(places[0], places[-1] + 1)
            columns: list[Sequence[Value]] = [values_of(each[part], kind) for each, kind in zip(shown, self._types)]
            at = 1
            for function in self._functions:
                states = [each[part].tolist() for each in groups.states[at : at + len(function.combine)] or groups.states[:1]]
                columns.append(list(map(function.result, *states)))
                at += len(function.combine)
            rows += zip(*columns) if columns else [()] * len(places)
        return rows

    def _classes(self, groups: _Groups | None) -> _Groups | None:
        """Groups whose texts are equal to their collations as one, with the least of the texts in each column."""
        places = [place for place, texts in enumerate(self._texts) if texts is not None and texts.has_classes]
        if groups is None or not places:
            return groups
        keys, ranks, orders = list(groups.keys), [], []
        for place in places:
            texts = self._texts[place]
            assert texts is not None
            rank, order = texts.by_rank(keys[place].values)
            keys[place] = texts.classes(keys[place])
            ranks.append(rank)
            orders.append(order)
        found = _grouped(keys, [*groups.states, *ranks], [*self._combine, *(np.minimum for _ in ranks)])
        least = found.states[len(groups.states) :]
        for place, rank, order in zip(places, least, orders):
            found.keys[place] = NumberVector(order[rank] if len(order) else rank, found.keys[place].missing)
        return _Groups(found.keys, found.states[: len(groups.states)])

    def _numbered(self, place: int, vector: Vector) -> NumberVector:
        texts = self._texts[place]
        if texts is not None:
            return texts.numbered(vector)
        assert isinstance(vector, NumberVector)
        return vector

    def _take(self, groups: _Groups) -> None:
        self._pending.append(groups)
        self._pending_count += len(groups.states[0])
        if self._pending_count > max(GROUPS_PENDING, 2 * self._merged_count):
            self._all()

    def _all(self) -> _Groups | None:
        if not self._pending:
            return None
        if len(self._pending) > 1:
            self._pending = [_grouped(*_concatenated(self._pending), self._combine)]
        self._pending_count = self._merged_count = len(self._pending[0].states[0])
        return self._pending[0]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Each number of `states` is of the group whose key stands at the same place; the first are how many rows it has."""

    keys: list[NumberVector]
    states: list[Array]


def _grouped(keys: Sequence[NumberVector], states: Sequence[Array], combine: Sequence[Any]) -> _Groups:
    if not keys:
        return _Groups([], [np.array([function.reduce(each)]) for function, each in zip(combine, states)])
    places, count = _places(keys)
    first = np.empty(count, np.int64)
    first[places[::-1]] = np.arange(len(places) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    places, first = rank[places], first[order]
    made = []
    for function, each in zip(combine, states):
        found = np.full(count, _NEUTRAL[function], np.int64)
        function.at(found, places, each)
        made.append(found)
    return _Groups([NumberVector(key.values[first], None if key.missing is None else key.missing[first]) for key in keys], made)


def _places(keys: Sequence[NumberVector]) -> tuple[Array, int]:
    """For each row which group it is of, and how many there are."""
    found: Array | None = None
    count = 1
    for key in keys:
        values, places = factorized(key.values)
        size = len(values)
        if key.missing is not None:
            places = np.where(key.missing, size, places)
            size += 1
        if found is None:
            found, count = places, size
            if key.missing is None:
                continue
        else:
            found, count = found * size + places, count * size
        present, found = factorized(found)
        count = len(present)
    assert found is not None
    return found, count


def _concatenated(groups: Sequence[_Groups]) -> tuple[list[NumberVector], list[Array]]:
    keys = []
    for place in range(len(groups[0].keys)):
        parts = [each.keys[place] for each in groups]
        missing = None
        if any(each.missing is not None for each in parts):
            missing = np.concatenate([np.zeros(len(each), bool) if each.missing is None else each.missing for each in parts])
        keys.append(NumberVector(np.concatenate([each.values for each in parts]), missing))
    return keys, [np.concatenate([each.states[place] for each in groups]) for place in range(len(groups[0].states))]


class _Texts:
    """Texts as numbers. Those that the collation calls equal are of one class."""

    def __init__(self, kind: SqlType) -> None:
        self._key = text_key(kind)
        self._numbers: dict[Any, int] = {}
        self._type = pa.binary() if kind.kind in BLOBS else pa.string()
        self.size = 0
        """How long the different texts are, together."""

    @property
    def has_classes(self) -> bool:
        return self._key is not None

    def numbered(self, vector: pa.Array) -> NumberVector:
        encoded = vector.dictionary_encode()
        numbers = self._numbers
        before, texts = len(numbers), encoded.dictionary.to_pylist()
        known = np.fromiter((numbers.setdefault(each, len(numbers)) for each in texts), np.int64, len(texts))
        self.size += sum(len(texts[place]) for place in np.flatnonzero(known >= before).tolist())
        if not vector.null_count:
            return NumberVector(known[encoded.indices.to_numpy()])
        missing = vector.is_null().to_numpy(zero_copy_only=False)
        places = encoded.indices.fill_null(0).to_numpy()
        return NumberVector(np.where(missing, 0, known[places] if len(known) else 0), missing)

    def shown_bytes(self, numbers: NumberVector) -> int:
        """About how many bytes `shown` takes."""
        lengths = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        return int(lengths[numbers.values].sum()) if len(lengths) else 0

    def shown(self, numbers: NumberVector) -> pa.Array:
        return self._all().take(pa.array(numbers.values, mask=numbers.missing))

    def _all(self) -> pa.Array:
        """The texts, by their numbers."""
        parts = [pa.array(part, self._type) for part in in_parts(list(self._numbers))]
        return pa.concat_arrays(parts) if parts else pa.array([], self._type)

    def classes(self, numbers: NumberVector) -> NumberVector:
        assert self._key is not None
        classes: dict[Any, int] = {}
        of_number = np.fromiter((classes.setdefault(self._key(each), len(classes)) for each in self._numbers), np.int64, len(self._numbers))
        return NumberVector(of_number[numbers.values] if len(of_number) else numbers.values, numbers.missing)

    def by_rank(self, numbers: Array) -> tuple[Array, Array]:
        """The places of these texts in their order as they are, and the number of the text at each place."""
        order = pc.sort_indices(self._all()).to_numpy().astype(np.int64)  # UTF-8 has the order of characters
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return (rank[numbers] if len(rank) else numbers), order


def _from_arrow(array: pa.Array, texts: _Texts | None) -> Vector:
    if texts is not None:
        return array
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return NumberVector(array.fill_null(0).to_numpy(), missing)


def _full(vector: Vector, count: int) -> Vector:
    """A constant is one value for all rows."""
    if len(vector) == count or not isinstance(vector, NumberVector):
        return vector
    missing = None if vector.missing is None else np.broadcast_to(vector.missing, (count,))
    return NumberVector(np.broadcast_to(vector.values, (count,)), missing)


def _is_groupable(kind: SqlType) -> bool:
    return is_number(kind) or (kind.kind in STRINGS and kind.kind is not Kind.JSON) or kind.kind in BLOBS


# --- functions


def _function(function: AggregateFunction, outputs: tuple[Expression, ...] | None) -> _Function | None:
    name = function.function
    if name == "count_star" or (name == "count" and not function.arguments):
        return _Function(None, lambda argument, count: [], (), _itself)
    if (function.distinct and name not in ("min", "max")) or len(function.arguments) != 1:
        return None
    argument = composed(function.arguments[0], outputs)
    if isinstance(argument, Call) and argument.function == "unsettled" and not is_unsettled(argument.arguments[0]):
        argument = argument.arguments[0]
    evaluate = compiled(argument)
    if evaluate is None or (isinstance(argument, Call) and argument.function == "unsettled"):
        return None
    if name == "count":
        return _Function(_presence(evaluate), _present, (np.add,), _itself)
    kind = argument.type
    if name in ("sum", "avg") and function.type.kind is Kind.DECIMAL and is_exact(kind):
        return _Function(evaluate, _sums, (np.add, np.add, np.add), _summed(function, kind))
    if name in ("min", "max", "any_value") and is_number(kind):
        combine = np.maximum if name == "max" else np.minimum
        return _Function(evaluate, _extremes(_NEUTRAL[combine]), (combine, np.add), _extreme(kind))
    return None


def _itself(count: int) -> int:
    return count


def _presence(evaluate: Evaluate) -> Evaluate:
    """What is counted may be anything: only whether it is NULL matters."""

    def found(columns: Columns) -> NumberVector:
        vector = evaluate(columns)
        if isinstance(vector, NumberVector):
            return vector
        return NumberVector(np.zeros(len(vector), np.int64), vector.is_null().to_numpy(zero_copy_only=False) if vector.null_count else None)

    return found


def _present(argument: NumberVector | None, count: int) -> list[Array]:
    assert argument is not None
    return [np.ones(count, np.int64) if argument.missing is None else (~argument.missing).astype(np.int64)]


def _sums(argument: NumberVector | None, count: int) -> list[Array]:
    assert argument is not None
    return [argument.values >> _LOW_BITS, argument.values & _LOW_MASK, *_present(argument, count)]


def _extremes(neutral: int) -> Callable[[NumberVector | None, int], list[Array]]:
    def state(argument: NumberVector | None, count: int) -> list[Array]:
        assert argument is not None
        values = argument.values if argument.missing is None else np.where(argument.missing, neutral, argument.values)
        return [values, *_present(argument, count)]

    return state


def _summed(function: AggregateFunction, argument: SqlType) -> Callable[..., Value]:
    is_integer, scale = argument.kind in INTEGERS, function.type.scale
    added = scale - argument.scale

    def result(high: int, low: int, count: int) -> Value:
        number = (high << _LOW_BITS) + low
        total = number if is_integer else scaled(number, argument.scale)
        return exact_sum(total, count, scale) if function.function == "sum" else exact_average(total, count, scale, added)

    return result


def _extreme(kind: SqlType) -> Callable[..., Value]:
    if kind.kind is Kind.DECIMAL:
        return lambda number, count: scaled(number, kind.scale) if count else None
    return lambda number, count: number if count else None

