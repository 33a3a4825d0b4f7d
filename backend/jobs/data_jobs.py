"""Data jobs as those who want them see them: a node of the plan, evaluated by Spark as of an epoch that is kept."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from backend.jobs.spark_sql import JobRelation, SparkQuery
from backend.jobs.spark_types import packed_table, values_of
from backend.network.job_messages import AskJobs, CancelJob, JobRows, JobScan, JobStatus, ReadJob, RunJob
from backend.network.transport import Peer, connect
from backend.scans.column_programs import unpacked
from backend.scans.scan_jobs import parts_of
from controller.catalog import encode_node, encode_table
from controller.registry import Address
from dataflow.errors import Condition, Retryable
from dataflow.schema import Table
from dataflow.values.types import Row, SqlType
from persistence.key_range import after_prefix
from persistence.layout import row_prefix

if TYPE_CHECKING:
    from backend.clustering.cluster import Cluster

PARTS = 4
"""Of each table, for all shards together; at least one for each shard."""

Find = Callable[[], Awaitable[Address | None]]


class DataJobs:
    """`find` says where the launcher takes jobs; None if it is not there."""

    def __init__(self, find: Find, secret: bytes) -> None:
        self._find = find
        self._secret = secret

    async def rows(
        self, cluster: Cluster, query: SparkQuery, tables: Mapping[int, Table], epoch: int, purpose: str
    ) -> AsyncGenerator[list[Row], None]:
        """The rows of the query as of the epoch, which is kept on all shards. What is not read any more is cancelled."""
        scans = [await self._scan(cluster, each, tables) for each in query.scans]
        peer = await self._connect()
        job = os.urandom(12)
        try:
            answer: JobRows = await peer.ask(RunJob(job, purpose, query.sql, scans, epoch))
            while True:
                for batch in answer.batches:
                    yield rows_of(unpacked(batch), query.types)
                if answer.ended:
                    return
                answer = await peer.ask(ReadJob(job))
        except ConnectionError as error:
            raise Retryable(Condition.UNKNOWN_ERROR, "Spark was lost") from error
        finally:
            peer.send(CancelJob(job))
            peer.close()

    async def status(self) -> list[JobStatus]:
        """The jobs that there are."""
        try:
            peer = await self._connect()
        except Retryable:
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
        raise Retryable(Condition.UNKNOWN_ERROR, "Spark takes no jobs at the moment")

    async def _scan(self, cluster: Cluster, scan: JobRelation, tables: Mapping[int, Table]) -> JobScan:
        table = tables[scan.base.table]
        prefix = row_prefix(table.id)
        parts = await parts_of(cluster, (prefix, after_prefix(prefix)), PARTS)
        return JobScan(scan.name, encode_node(scan.node), encode_table(packed_table(table)), scan.schema, parts)


def rows_of(batch: pa.RecordBatch, types: tuple[SqlType, ...]) -> list[Row]:
    return list(zip(*[values_of(column, kind) for column, kind in zip(batch.columns, types)]))
