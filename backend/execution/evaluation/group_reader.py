"""Aggregates and top-k: the rows of the groups or partitions asked for, then the same code as views have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from backend.execution.answering.sorting import sort_rows
from backend.execution.evaluation.reader import Conditions, Keys, Reader, Run, streamed, taken
from backend.execution.pace import batches, parts
from backend.execution.rows import Keyed, Rows, Weight, held
from dataflow.code.group_code import GroupWriter
from dataflow.expressions.expression import columns_of
from dataflow.expressions.rewriting import moved
from dataflow.expressions.source import FunctionSource, key_function
from dataflow.functions import is_volatile
from dataflow.plan.node import Aggregate, Columns, TopK
from dataflow.values.ordering import sort_function
from dataflow.values.types import BLOBS, TEXTS, Kind, Row, SqlType, Value

if TYPE_CHECKING:
    from backend.execution.evaluation.readers import Readers

GROUP_BYTES = 400
"""What a group takes besides its values."""
DISTINCT_BYTES = 200
"""The same where nothing is computed of it: its key, in a dict."""
SMALL_LENGTH = 255
"""Texts of so many characters at most are part of `GROUP_BYTES`."""
CONSTANT = frozenset({"count_star", "count", "sum", "avg", "min", "max", "any_value", "bit_and", "bit_or", "bit_xor"})
"""Functions that keep as much of a thousand rows as of one."""


class AggregateReader:
    """`columns` and `conditions` are about group columns only."""

    def __init__(self, readers: Readers, node: Aggregate, columns: Columns, conditions: Conditions) -> None:
        places = dict(enumerate(node.group))
        inner = tuple(places[each] for each in columns)
        order = tuple(sorted(range(len(inner)), key=lambda place: inner[place]))
        self._order = order
        self._key = key_function(tuple(range(len(order))), [node.types[columns[place]] for place in order])
        self._same = order == tuple(range(len(inner)))
        self._input = readers.reader(
            node.input, tuple(inner[place] for place in order), tuple(moved(each, places) for each in conditions)
        )
        self._load = _loader(node)
        self._distinct = _distinct_loader(node) if node.group and not node.functions else None
        self._take = streamed if _is_small(node) else _held

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        if keys is not None and not self._same:
            order, wanted = self._order, list(keys.values())
            ordered = [tuple([values[place] for place in order]) for part in parts(wanted) for values in part]
            keys = {self._key(values): values for part in parts(ordered) for values in part}
        rows = await self._take(self._input, run, keys)
        if self._distinct is None:
            return self._load(rows, run.parameters)
        states, _weight = self._distinct(rows)
        del rows  # those that were the first of their groups count from here on
        return held(batches(states.values()))


async def _held(reader: Reader, run: Run, keys: Keys | None) -> Iterator[Sequence[Row]]:
    return parts(await taken(reader, run, keys))


def _is_small(node: Aggregate) -> bool:
    """Whether `GROUP_BYTES` are all that a group takes: then nobody needs to hold the rows, whose memory counts."""
    functions = all(each.function in CONSTANT and not each.distinct for each in node.functions)
    return bool(node.functions) and functions and all(map(_is_short, node.types))


def _is_short(type_: SqlType) -> bool:
    if type_.kind in TEXTS | BLOBS:
        return type_.length is not None and type_.length <= SMALL_LENGTH
    return type_.kind is not Kind.JSON


def _loader(node: Aggregate) -> Callable[[Iterable[Sequence[Row]], Sequence[Value]], list[Row]]:
    code = FunctionSource("groups", "rows, p")
    writer = GroupWriter(code, node, only_grows=True)
    code.line(f"states = {code.constant(Keyed)}()")
    if not node.group:
        code.line(f"states[()] = {writer.fresh}")
    code.line(f"weight = {code.constant(Weight)}()")
    with code.block("for part in rows:"):
        code.line("before = len(states)")
        with code.block("for row in part:"):
            code.line(f"g = {writer.group_key()}")
            code.line("s = states.get(g)")
            with code.block("if s is None:"):
                code.line(f"s = states[g] = {writer.fresh}")
            writer.absorb("1")
        code.line(f"weight.add((len(states) - before) * {GROUP_BYTES})")
    made = f"[{writer.output_row('g')} for g, s in part]"
    code.line(f"return {code.constant(held)}({made} for part in {code.constant(batches)}(states.items()))")
    found: Callable[[Iterable[Sequence[Row]], Sequence[Value]], list[Row]] = code.build()
    return found


def _distinct_loader(node: Aggregate) -> Callable[[Iterable[Sequence[Row]]], tuple[Keyed[Any, Row], Weight]]:
    """As `_loader`, where nothing is computed: the first row of each group, as it is."""
    code = FunctionSource("distinct", "rows")
    writer = GroupWriter(code, node)
    made = "row" if node.group == tuple(range(len(node.input.types))) else f"({', '.join(writer.columns[c] for c in node.group)},)"
    code.line(f"states = {code.constant(Keyed)}()")
    code.line(f"weight = {code.constant(Weight)}()")
    with code.block("for part in rows:"):
        code.line("before = len(states)")
        with code.block("for row in part:"):
            code.line(f"g = {writer.group_key()}")
            code.line(f"if g not in states: states[g] = {made}")
        code.line(f"weight.add((len(states) - before) * {DISTINCT_BYTES})")
    code.line("return states, weight")
    found: Callable[[Iterable[Sequence[Row]]], tuple[Keyed[Any, Row], Weight]] = code.build()
    return found


class TopKReader:
    """`columns` and `conditions` are about partition columns only."""

    def __init__(self, readers: Readers, node: TopK, columns: Columns, conditions: Conditions) -> None:
        self._node = node
        self._input = readers.reader(node.input, columns, conditions)
        self._partition = key_function(node.partition, node.types)
        self._sort_key = sort_function(node.order)

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        rows = await self._input.rows(run, keys)
        partitions: Keyed[Any, list[Row]] = Keyed()
        for part in parts(rows):
            for row in part:
                partitions.setdefault(self._partition(row), []).append(row)
        offset, stop = self._node.offset, self._node.offset + self._node.limit
        sort_key, parameters = self._sort_key, run.parameters
        out: Rows[Row] = Rows()
        for each in partitions.values():
            sort_rows(each, lambda row: sort_key(row, parameters))
            out.add_shared(each[offset:stop])
        return out


def about(conditions: Conditions, columns: Sequence[int]) -> tuple[Conditions, Conditions]:
    """The conditions that read these columns alone and leave nothing to chance, and the others."""
    allowed = frozenset(columns)
    mine = tuple(
        each for each in conditions if columns_of(each) and columns_of(each) <= allowed and not is_volatile(each)
    )
    return mine, tuple(each for each in conditions if each not in mine)
