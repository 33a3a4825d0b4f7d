"""The rows of one stored table that fulfil a WHERE, read along the index that finds them, in chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from operator import itemgetter

from backend.execution.answering.ordering import Sorter
from backend.execution.evaluation.access import AccessPath, choose
from backend.execution.evaluation.reading import Found, find, lock_rows, row_decoder
from backend.execution.execution import Execution
from backend.execution.pace import parts
from backend.execution.rows import Rows
from controller.sql.locking import Locking
from dataflow.expressions.compile import compile_predicate
from dataflow.expressions.expression import Column, Expression
from dataflow.plan.node import Order
from dataflow.schema import Table
from dataflow.values.types import Row

FoundRow = tuple[Found, Row]
"""A row as it is stored, and decoded."""


class TableScan:
    """Where to look, and what to keep. `sorter` is None if the rows come in the order of `order_by` by themselves."""

    def __init__(
        self,
        table: Table,
        where: Expression | None,
        order_by: Sequence[Order] = (),
        outputs: Sequence[Expression] = (),
    ) -> None:
        self.table = table
        self.path = choose(table, where)
        self._predicate = None if where is None else compile_predicate(where)
        self._decode = row_decoder(table)
        direction = key_order(table, self.path, order_by)
        self._reverse = direction is True
        self.sorter = Sorter(order_by, outputs) if order_by and direction is None else None

    async def rows(
        self, execution: Execution, locking: Locking | None = None, epoch: int = 0
    ) -> AsyncGenerator[list[FoundRow], None]:
        """The rows that fulfil the WHERE, in chunks; `locking` and `epoch` as in `find`."""
        decode, predicate, parameters = self._decode, self._predicate, execution.parameters
        chunks = find(
            execution.transaction, self.table, self.path, parameters, reverse=self._reverse, locking=locking, epoch=epoch
        )
        async for chunk in chunks:
            for part in parts(chunk):
                decoded = [(found, decode(found[2])) for found in part]
                yield decoded if predicate is None else [pair for pair in decoded if predicate(pair[1], parameters)]

    async def locked(
        self, execution: Execution, locking: Locking, stop: int | None
    ) -> AsyncGenerator[list[FoundRow], None]:
        """The same rows, locked; no more than `stop` of them, the first in order, where a number is given."""
        source: AsyncIterator[list[FoundRow]] = self.rows(execution, locking)
        if self.sorter is not None and stop is not None:
            everything: Rows[FoundRow] = Rows()
            async for chunk in source:
                everything.add(chunk)
            self.sorter.sort_by(everything, itemgetter(1), execution.parameters)
            source = _once(everything)
        count = 0
        async for chunk in source:
            while chunk and count != stop:
                wanted = len(chunk) if stop is None else stop - count
                locked = await lock_rows(execution.transaction, chunk[:wanted], locking)
                chunk = chunk[wanted:]
                count += len(locked)
                yield locked
            if count == stop:
                break
        await source.aclose()  # type: ignore[attr-defined]


async def _once(rows: list[FoundRow]) -> AsyncGenerator[list[FoundRow], None]:
    yield rows


def key_order(table: Table, path: AccessPath, order_by: Sequence[Order]) -> bool | None:
    """Whether reading by primary key gives the order: False if forward, True if in reverse, None if not."""
    if path.index is not table.primary_key or len(order_by) > len(path.index.parts):
        return None
    positions = {column.id: position for position, column in enumerate(table.columns)}
    directions = set()
    for item, part in zip(order_by, path.index.parts):
        expression = item.expression
        if not isinstance(expression, Column) or expression.index != positions[part.column_id] or part.prefix is not None:
            return None
        directions.add(item.descending != part.descending)
    return directions.pop() if len(directions) == 1 else None
