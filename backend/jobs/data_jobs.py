"""Data jobs as those who want them see them: a node of the plan, evaluated by Spark as of an epoch that is kept, or not at all (`JobFailed`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from backend.jobs.spark_sql import JobRelation, SparkQuery
from backend.jobs.spark_types import packed_table, values_of
from backend.network.job_messages import AskJobs, CancelJob, JobRows, JobScan, JobStatus, ReadJob, RunJob
from backend.network.scan_messages import EstimateRows
from backend.network.transport import Peer, connect
from backend.scans.column_programs import unpacked
from backend.scans.scan_jobs import parts_of
from controller.catalog import encode_node, encode_table
from controller.registry import Address
from dataflow.errors import Condition, MillraceError
from dataflow.schema import Table
from dataflow.values.types import Row, SqlType
from persistence.key_range import KeyRange, after_prefix
from persistence.layout import row_prefix

if TYPE_CHECKING:
    from backend.clustering.cluster import Cluster

PARTS = 4
"""Of each table, for all shards together; at least one for each shard."""

ROWS_MIN = 1_000_000
"""Evaluated by rows, so many take about as long as a job takes to begin."""

Find = Callable[[], Awaitable[Address | None]]


class JobFailed(MillraceError):
    """Spark has not done it, for the reason given."""

    def __init__(self, reason: object) -> None:
        super().__init__(Condition.UNKNOWN_ERROR, reason)


class DataJobs:
    """Over the tables of a cluster. `find` says where the launcher takes jobs; None if it is not there.

    A query that is asked once is a job if it reads more than `rows_min` rows of a table; 0: whatever it reads.
    """

    def __init__(self, cluster: Cluster, find: Find, secret: bytes, rows_min: int = ROWS_MIN) -> None:
        self.cluster = cluster
        self.rows_min = rows_min
        self._find = find
        self._secret = secret

    async def estimated_rows(self, table: Table) -> int:
        """About how many rows the table has, as far as they are in files."""
        shards, keys = range(self.cluster.shard_count), row_range(table)
        found = await asyncio.gather(*(self.cluster.ask(shard, EstimateRows(*keys)) for shard in shards))
        return sum(each.rows for each in found)

    async def rows(
        self, query: SparkQuery, tables: Mapping[int, Table], epoch: int, purpose: str, for_statement: bool = False
    ) -> AsyncGenerator[list[Row], None]:
        """The rows of the query as of the epoch, which is kept on all shards. What is not read any more is cancelled.

        A job `for_statement` does not wait for others to end, and ends itself where a value gives a warning.
        """
        scans = [await self._scan(each, tables, for_statement) for each in query.scans]
        peer = await self._connect()
        job = os.urandom(12)
        try:
            answer: JobRows = await peer.ask(RunJob(job, purpose, query.sql, scans, epoch, may_wait=not for_statement))
            while True:
                for batch in answer.batches:
                    yield rows_of(unpacked(batch), query.types)
                if answer.ended:
                    return
                answer = await peer.ask(ReadJob(job))
        except ConnectionError as error:
            raise JobFailed("Spark was lost") from error
        except MillraceError as error:
            raise JobFailed(error) from error
        finally:
            peer.send(CancelJob(job))
            peer.close()

    async def status(self) -> list[JobStatus]:
        """The jobs that there are."""
        try:
            peer = await self._connect()
        except JobFailed:
            return []
        try:
            found: list[JobStatus] = (await peer.ask(AskJobs())).jobs
            return found
        except ConnectionError:
            return []
        finally:
            peer.close()

    async def _connect(self) -> Peer:
        address = await self._find()
        try:
            if address is not None:
                return await connect(address.host, address.port, self._secret)
        except (OSError, TimeoutError):
            pass
        raise JobFailed("Spark takes no jobs at the moment")

    async def _scan(self, scan: JobRelation, tables: Mapping[int, Table], is_silent: bool) -> JobScan:
        table = tables[scan.base.table]
        parts = await parts_of(self.cluster, row_range(table), PARTS)
        return JobScan(scan.name, encode_node(scan.node), encode_table(packed_table(table)), scan.schema, parts, is_silent)


def row_range(table: Table) -> KeyRange:
    """Where the rows of a table are."""
    prefix = row_prefix(table.id)
    return prefix, after_prefix(prefix)


def rows_of(batch: pa.RecordBatch, types: tuple[SqlType, ...]) -> list[Row]:
    return list(zip(*[values_of(column, kind) for column, kind in zip(batch.columns, types)]))
