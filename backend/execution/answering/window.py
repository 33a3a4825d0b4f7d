"""Window functions over rows that are at hand, computed when they are read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from backend.execution.answering.frame_documents import COLLECTING, FrameDocuments
from backend.execution.answering.sorting import order_of
from backend.execution.pace import breathe, parts
from backend.execution.rows import Keyed, held
from controller.sql.plan import Bound, Frame, WindowFunction
from dataflow.aggregates.running import RunningAggregate
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import compile_row, compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, parameters_of
from dataflow.values.comparison import group_key, sort_key
from dataflow.values.inference import merged_type
from dataflow.values.types import Row, Value


class CompiledWindow:
    """One window function; its row is the node's row."""

    def __init__(self, window: WindowFunction) -> None:
        function = window.function
        self._name = function.function
        self._type = function.type
        self._partition = compile_row(window.partition)
        self._partition_keys = [group_key(each.type) for each in window.partition]
        self._order = compile_row(tuple(item.expression for item in window.order))
        self._order_keys = [sort_key(item.expression.type, item.descending) for item in window.order]
        self._arguments = compile_row(function.arguments)
        self._frame = window.frame
        self._ordered = bool(window.order)
        self._ranges = _Ranges(window) if _reaches(window.frame) else None
        self._documents = FrameDocuments(function) if function.function in COLLECTING else None
        self._aggregate: RunningAggregate | None = None
        if not any(self._name in names for names in (_RANKS, _OFFSETS, _FRAMED, COLLECTING)):
            given = tuple([Column(place, each.type) for place, each in enumerate(function.arguments)])
            self._aggregate = RunningAggregate(replace(function, arguments=given))

    def values(self, rows: Sequence[Row], parameters: Sequence[Value]) -> list[Value]:
        """The function's value for each row, in the order of the rows."""
        partitions: Keyed[Any, list[int]] = Keyed()
        for number, row in enumerate(rows):
            breathe()
            values = self._partition(row, parameters)
            key = tuple([value if f is None else f(value) for f, value in zip(self._partition_keys, values)])
            partitions.setdefault(key, []).append(number)
        out: list[Value] = [None] * len(rows)
        for numbers in partitions.values():
            keys = held([self._sort_key(rows[number], parameters) for number in part] for part in parts(numbers))
            order = order_of(keys)
            ordered = [rows[numbers[place]] for part in parts(order) for place in part]
            found = self._over(ordered, [keys[place] for part in parts(order) for place in part], parameters)
            for place, value in zip(order, found):
                out[numbers[place]] = value
                breathe()
        return out

    def _sort_key(self, row: Row, parameters: Sequence[Value]) -> tuple[Any, ...]:
        return tuple([key(value) for key, value in zip(self._order_keys, self._order(row, parameters))])

    def _over(self, rows: list[Row], keys: list[Any], parameters: Sequence[Value]) -> list[Value]:
        if self._name in _RANKS:
            count = self._arguments(rows[0], parameters)[0] if self._name == "ntile" else None
            return _RANKS[self._name](keys, count)
        if self._name in _OFFSETS:
            return self._neighbours(rows, parameters)
        if self._ranges is None:
            starts, ends = self._frames(keys, parameters)
        else:
            starts, ends = self._ranges.frames(rows, parameters)
        if self._name in _FRAMED:
            return self._framed(rows, starts, ends, parameters)
        given = held([self._arguments(row, parameters) for row in part] for part in parts(rows))
        if self._documents is not None:
            return self._documents.values(given, starts, ends)
        assert self._aggregate is not None
        return _running(self._aggregate, given, starts, ends)

    def _frames(self, keys: list[Any], parameters: Sequence[Value]) -> tuple[list[int], list[int]]:
        """For each row, where its frame starts and ends (exclusive)."""
        count = len(keys)
        unit, *bounds = self._frame or ("range", None, 0 if self._ordered else None)
        start, end = [_row_count(each, parameters) for each in bounds]
        if unit == "rows":
            starts = [0 if start is None else min(max(place + start, 0), count) for part in parts(range(count)) for place in part]
            ends = [count if end is None else min(max(place + end + 1, 0), count) for part in parts(range(count)) for place in part]
            return starts, ends
        firsts, lasts = _peers(keys)
        return (
            [0] * count if start is None else firsts,
            [count] * count if end is None else lasts,
        )

    def _neighbours(self, rows: list[Row], parameters: Sequence[Value]) -> list[Value]:
        arguments = held([self._arguments(row, parameters) for row in part] for part in parts(rows))
        out: list[Value] = []
        for place, given in enumerate(arguments):
            breathe()
            offset = _counted(self._name, given[1])
            other = place - offset if self._name == "lag" else place + offset
            if 0 <= other < len(rows):
                out.append(arguments[other][0])
            else:
                out.append(given[2] if len(given) > 2 else None)
        return out

    def _framed(
        self, rows: list[Row], starts: list[int], ends: list[int], parameters: Sequence[Value]
    ) -> list[Value]:
        arguments = held([self._arguments(row, parameters) for row in part] for part in parts(rows))
        out: list[Value] = []
        for place, (start, end) in enumerate(zip(starts, ends)):
            breathe()
            at = start if self._name == "first_value" else end - 1
            if self._name == "nth_value":
                at = start + _counted(self._name, arguments[place][1]) - 1
            out.append(arguments[at][0] if start <= at < end else None)
        return out


def _running(aggregate: RunningAggregate, rows: list[Row], starts: list[int], ends: list[int]) -> list[Value]:
    """The value over each frame. Rows are taken in and out as frames move; one that moves back begins anew."""
    out: list[Value] = []
    state, first, last = aggregate.fresh(), 0, 0
    for start, end in zip(starts, ends):
        breathe()
        end = max(end, start)
        if start < first or end < last or start >= last:
            state, first, last = aggregate.fresh(), start, start
        for part in parts(rows[first:start]):
            aggregate.absorb(state, part, -1)
        for part in parts(rows[last:end]):
            aggregate.absorb(state, part, 1)
        first, last = start, end
        out.append(aggregate.result(state))
    return out


def _reaches(frame: Frame | None) -> bool:
    return frame is not None and frame[0] == "range" and any(isinstance(each, Expression) for each in frame)


def _row_count(bound: Bound, parameters: Sequence[Value]) -> int | None:
    """How far a frame of ROWS reaches; error 3586 if its parameter does not say."""
    if not isinstance(bound, Expression):
        return bound
    for place in parameters_of(bound):
        given = parameters[place]
        if not isinstance(given, int) or given < 0:
            raise InvalidStatement(Condition.WINDOW_FRAME, "<unnamed window>")
    found = compile_scalar(bound)((), parameters)
    assert isinstance(found, int)
    return found


class _Ranges:
    """RANGE frames that reach to a value before or after that of the current row."""

    def __init__(self, window: WindowFunction) -> None:
        assert window.frame is not None
        ((item,), self._bounds) = window.order, window.frame[1:]
        kinds = [each for each in (Column(0, item.expression.type), *self._bounds) if isinstance(each, Expression)]
        kind = merged_type(kinds)
        self._value = compile_scalar(item.expression)
        self._computed = compile_row([each if each.type == kind else Call("coalesce", (each,), kind) for each in kinds])
        self._key = sort_key(kind, item.descending)

    def frames(self, rows: list[Row], parameters: Sequence[Value]) -> tuple[list[int], list[int]]:
        """For each of the rows, which are in order, where its frame starts and ends (exclusive)."""
        found = held([self._computed((self._value(row, parameters),), parameters) for row in part] for part in parts(rows))
        keys = [self._key(each[0]) for part in parts(found) for each in part]
        firsts, lasts = _peers(keys)
        places: list[list[int]] = []
        at = 0
        for bound, peers, edge, side in zip(self._bounds, (firsts, lasts), (0, len(rows)), (bisect_left, bisect_right)):
            if isinstance(bound, Expression):
                at += 1
                places.append([side(keys, self._key(each[at])) for part in parts(found) for each in part])
            else:
                places.append([edge] * len(rows) if bound is None else peers)
        return places[0], places[1]


def _peers(keys: list[Any]) -> tuple[list[int], list[int]]:
    """For each row, the first and the end of those that are equal in order."""
    firsts: list[int] = []
    for place, key in enumerate(keys):
        breathe()
        firsts.append(firsts[-1] if place and keys[place - 1] == key else place)
    lasts = [0] * len(keys)
    for place in range(len(keys) - 1, -1, -1):
        breathe()
        same = place + 1 < len(keys) and keys[place + 1] == keys[place]
        lasts[place] = lasts[place + 1] if same else place + 1
    return firsts, lasts


def _dense_rank(keys: list[Any], _: Value) -> list[Value]:
    out: list[Value] = []
    rank = 0
    for place, key in enumerate(keys):
        breathe()
        rank += not place or keys[place - 1] != key
        out.append(rank)
    return out


def _percent_rank(keys: list[Any], _: Value) -> list[Value]:
    return [0.0 if len(keys) == 1 else first / (len(keys) - 1) for first in _peers(keys)[0]]


def _counted(name: str, number: Value) -> int:
    """A number of rows: a parameter or a column may be something else."""
    if not isinstance(number, int):
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, name)
    return number


def _ntile(keys: list[Any], count: Value) -> list[Value]:
    count = _counted("ntile", count)
    if count < 1:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "ntile")
    size, larger = divmod(len(keys), count)
    out: list[Value] = []
    for bucket in range(count):
        out += [bucket + 1] * (size + (bucket < larger))
    return out


_RANKS: dict[str, Callable[[list[Any], Value], list[Value]]] = {
    "row_number": lambda keys, _: list(range(1, len(keys) + 1)),
    "rank": lambda keys, _: [first + 1 for first in _peers(keys)[0]],
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": lambda keys, _: [last / len(keys) for last in _peers(keys)[1]],
    "ntile": _ntile,
}
_OFFSETS = frozenset({"lag", "lead"})
_FRAMED = frozenset({"first_value", "last_value", "nth_value"})
