"""GROUP BY: rows become groups, and each group one row of its keys and aggregates.

The output row is (group_by values…, aggregate values…). Without GROUP BY there is exactly
one group, also over no rows at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.execution.aggregation import Accumulator, accumulator
from backend.execution.memory_account import size_of
from backend.execution.pace import batches, parts
from backend.execution.rows import Weight, drop, held
from controller.sql.plan import Aggregate
from dataflow.comparison import group_key
from dataflow.compile import compile_row
from dataflow.expression import Expression
from dataflow.types import Row, SqlType, Value

GROUP_BYTES = 400
"""What a group takes besides its values."""
COLLECTING = frozenset({"group_concat", "json_arrayagg", "json_objectagg"})


class Grouping:
    def __init__(self, group_by: Sequence[Expression], aggregates: Sequence[Aggregate]) -> None:
        self._values = compile_row(tuple(group_by)) if group_by else None
        self._key = row_key([expression.type for expression in group_by])
        self._arguments, self._make = _accumulators(aggregates)
        self._collects = any(each.distinct or each.function in COLLECTING for each in aggregates)

    def groups(self) -> Groups:
        return Groups(self._values, self._key, self._arguments, self._make, self._collects)


class Groups:
    """The groups of one execution."""

    def __init__(
        self,
        values: Callable[[Row, Sequence[Value]], Row] | None,
        key: Callable[[Row], object],
        arguments: Callable[[Row, Sequence[Value]], Sequence[object]],
        make: Callable[[], list[Accumulator]],
        collects: bool,
    ) -> None:
        self._values = values
        self._key = key
        self._arguments = arguments
        self._make = make
        self._groups: dict[object, tuple[Row, list[Accumulator]]] = {}
        self._weight = Weight()
        self._collects = collects
        if values is None:
            self._groups[()] = ((), make())

    def add(self, rows: Sequence[Row], parameters: Sequence[Value]) -> None:
        for part in parts(rows):
            before = len(self._groups)
            self._add(part, parameters)
            new = len(self._groups) - before
            # An accumulator that keeps values keeps no more than its row has.
            self._weight.add(new * GROUP_BYTES + (size_of(part) if new or self._collects else 0))

    def _add(self, rows: Sequence[Row], parameters: Sequence[Value]) -> None:
        groups, arguments, values, key = self._groups, self._arguments, self._values, self._key
        for row in rows:
            if values is None:
                accumulators = groups[()][1]
            else:
                group_values = values(row, parameters)
                name = key(group_values)
                group = groups.get(name)
                if group is None:
                    group = groups[name] = (group_values, self._make())
                accumulators = group[1]
            for each, value in zip(accumulators, arguments(row, parameters)):
                each.add(value)

    def rows(self) -> list[Row]:
        rows = held(
            [values + tuple(each.result() for each in accumulators) for values, accumulators in part]
            for part in batches(self._groups.values())
        )
        drop(self._groups)
        return rows


def _accumulators(
    aggregates: Sequence[Aggregate],
) -> tuple[Callable[[Row, Sequence[Value]], Sequence[object]], Callable[[], list[Accumulator]]]:
    """The arguments of all aggregates for a row, and how to start a group."""
    makers = []
    arguments: list[Expression] = []
    slices: list[slice] = []
    for aggregate in aggregates:
        expressions, make = accumulator(aggregate)
        slices.append(slice(len(arguments), len(arguments) + len(expressions)))
        arguments += expressions
        makers.append(make)
    values = compile_row(tuple(arguments))
    if len(arguments) == len(aggregates):
        return values, lambda: [make() for make in makers]

    def several(row: Row, parameters: Sequence[Value]) -> Sequence[object]:
        found = values(row, parameters)
        return [found[part.start] if part.stop - part.start == 1 else found[part] for part in slices]

    return several, lambda: [make() for make in makers]


def row_key(types: Sequence[SqlType]) -> Callable[[Row], object]:
    """Equal for rows that GROUP BY and DISTINCT take for the same."""
    keys = [group_key(type_) for type_ in types]
    if all(key is None for key in keys):
        return lambda row: row
    return lambda row: tuple([value if key is None else key(value) for key, value in zip(keys, row)])
