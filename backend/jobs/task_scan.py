"""The tasks of a data job: each reads its part of a scan from the shard that has it. It runs in Spark's Python workers.

Shards are asked directly, with the cluster's secret: who asked for the job has checked what may be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from backend.clustering.column_reads import scan_columns
from backend.jobs.spark_types import arrow_type_of
from backend.network.connections import ShardConnections
from backend.network.job_messages import JobScan
from backend.network.scan_messages import ScanColumns
from controller.catalog import decode_node, decode_table
from controller.registry import Address
from dataflow.expressions.expression import Column
from dataflow.plan.node import Join
from dataflow.values.arrow_values import arrow_type


class PartReader(DataSourceReader):  # type: ignore[misc]
    """Reads `scan` as of the epoch; a partition is the number of a part."""

    def __init__(self, scan: JobScan, epoch: int, addresses: dict[int, Address], secret: bytes) -> None:
        self.scan = scan
        self.epoch = epoch
        self.addresses = addresses
        self.secret = secret

    def partitions(self) -> list[Any]:
        return [InputPartition(number) for number in range(len(self.scan.parts))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        names = [name for name, _ in self.scan.columns]
        types = [arrow_type_of(each) for _, each in self.scan.columns]
        fields = self._fields()
        for encoded in self._messages(partition.value):
            batch = pa.ipc.read_record_batch(pa.py_buffer(encoded), fields)
            columns = [column if column.type == wanted else column.cast(wanted) for column, wanted in zip(batch.columns, types)]
            yield pa.RecordBatch.from_arrays(columns, names)

    def _fields(self) -> pa.Schema:
        """What the shards send."""
        node, table = decode_node(self.scan.node), decode_table(self.scan.table)
        assert isinstance(node, Join) and node.outputs is not None
        places = [each.index for each in node.outputs if isinstance(each, Column)]
        return pa.schema([(str(number), arrow_type(table.columns[place].type)) for number, place in enumerate(places)])

    def _messages(self, part: int) -> Iterator[bytes]:
        shard, start, stop = self.scan.parts[part]
        with asyncio.Runner() as runner:
            shards = runner.run(self._connections())
            messages = scan_columns(shards, shard, ScanColumns(0, self.scan.node, self.scan.table, start, stop, self.epoch, self.scan.is_silent))
            try:
                while True:
                    try:
                        yield runner.run(anext(messages))
                    except StopAsyncIteration:
                        return
            finally:
                runner.run(messages.aclose())
                runner.run(self._close(shards))

    async def _connections(self) -> ShardConnections:
        shards = ShardConnections(self.secret)
        shards.set_addresses(self.addresses)
        return shards

    async def _close(self, shards: ShardConnections) -> None:
        shards.close()


def source_of(reader: PartReader) -> type:
    """The reader as a source that Spark knows by the scan's name. It travels with its class: options would be shown in plans."""

    class ScanSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return reader.scan.name

        def reader(self, schema: Any) -> PartReader:
            return reader

    return ScanSource
