"""GROUP BY: rows become groups, and each group one row of its keys and aggregates.

The output row is (group_by values…, aggregate values…). Without GROUP BY there is exactly
one group, also over no rows at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from backend.execution.aggregation import Accumulator, accumulator
from controller.sql.plan import Aggregate
from dataflow.comparison import group_key
from dataflow.compile import compile_row
from dataflow.expression import Expression
from dataflow.types import Row, SqlType, Value


class Grouping:
    def __init__(self, group_by: Sequence[Expression], aggregates: Sequence[Aggregate]) -> None:
        self._values = compile_row(tuple(group_by)) if group_by else None
        self._key = row_key([expression.type for expression in group_by])
        self._arguments, self._make = _accumulators(aggregates)

    def groups(self) -> Groups:
        return Groups(self._values, self._key, self._arguments, self._make)


class Groups:
    """The groups of one execution."""

    def __init__(
        self,
        values: Callable[[Row, Sequence[Value]], Row] | None,
        key: Callable[[Row], object],
        arguments: Callable[[Row, Sequence[Value]], Sequence[object]],
        make: Callable[[], list[Accumulator]],
    ) -> None:
        self._values = values
        self._key = key
        self._arguments = arguments
        self._make = make
        self._groups: dict[object, tuple[Row, list[Accumulator]]] = {}
        if values is None:
            self._groups[()] = ((), make())

    def add(self, rows: Iterable[Row], parameters: Sequence[Value]) -> None:
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
        return [values + tuple(each.result() for each in accumulators) for values, accumulators in self._groups.values()]


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
