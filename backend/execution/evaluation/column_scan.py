"""SELECTs that are scanned by column: some columns of one stored table, and a filter.

What such a SELECT is for the shards: a node, the table, and the range of its rows. All others are evaluated, and their rows
made into record batches here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from backend.execution.outcome import Answer, ResultSet, RowStream
from controller.catalog import encode_node, encode_table
from controller.sql.plan import OutputColumn, Query
from controller.sql.query.one_table import over_one_table
from dataflow.expressions.expression import Column
from dataflow.expressions.rewriting import bound
from dataflow.plan.node import Join
from dataflow.values.arrow_values import arrow_array, arrow_field
from dataflow.values.types import Row, Value
from persistence.key_range import KeyRange, after_prefix
from persistence.layout import row_prefix

BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class ColumnScan:
    node: bytes
    table: bytes
    range: KeyRange

    def within(self, start: bytes, stop: bytes) -> KeyRange:
        """That part of the table's rows; whatever else is asked for is not in it."""
        return max(start, self.range[0]), min(stop, self.range[1])


def column_scan(query: Query, parameters: Sequence[Value]) -> ColumnScan | None:
    """None if it takes more than a scan."""
    if query.order_by or query.limit is not None or query.offset is not None or query.locking or query.count_found_rows:
        return None
    one = over_one_table(query)
    if one is None or one.distinct or one.table is None or one.table.id < 0:
        return None
    if not one.outputs or not all(isinstance(each, Column) for each in one.outputs):
        return None
    condition = None if one.filter is None else bound(one.filter, dict(enumerate(parameters)))
    prefix = row_prefix(one.table.id)
    node = Join((one.node,), filter=condition, outputs=one.outputs)
    return ColumnScan(encode_node(node), encode_table(one.table), (prefix, after_prefix(prefix)))


def schema_of(columns: Sequence[OutputColumn]) -> pa.Schema:
    return pa.schema([arrow_field(each.name, each.type, each.nullable) for each in columns])


async def batches_of(answer: Answer) -> AsyncGenerator[bytes, None]:
    """The rows of an evaluated SELECT as record batches."""
    assert isinstance(answer, ResultSet | RowStream)
    if isinstance(answer, ResultSet):
        for first in range(0, len(answer.rows), BATCH_ROWS):
            yield _batch(answer.columns, answer.rows[first : first + BATCH_ROWS])
        return
    rows: list[Row] = []
    try:
        while (chunk := await answer.next()) is not None:
            rows += chunk
            if len(rows) >= BATCH_ROWS:
                yield _batch(answer.columns, rows)
                rows = []
        if rows:
            yield _batch(answer.columns, rows)
    finally:
        await answer.chunks.aclose()


def _batch(columns: Sequence[OutputColumn], rows: Sequence[Row]) -> bytes:
    arrays = [arrow_array(values, column.type) for values, column in zip(zip(*rows), columns)]
    found: bytes = pa.RecordBatch.from_arrays(arrays, [str(place) for place in range(len(arrays))]).serialize().to_pybytes()
    return found
