"""The streaming sink: each batch is staged by tasks and published by one transaction, once.

Spark runs a batch again if it cannot tell whether it was committed. The transaction writes down the batch's number under the name of the query, or
`txnAppId`, and does nothing if that, or a later one, is there already. The query's id is in its checkpoint, so it survives restarts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from backend.network.server_address import ServerAddress
from backend.spark.column_types import Mapped
from backend.spark.writer import STAGING_PREFIX, MillraceWriter, Staged, WriteOptions

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class StagedInBatch(WriterCommitMessage):  # type: ignore[misc]
    """What a task has staged, and for which query."""

    staged: Staged
    staging: str
    application: str


class MillraceStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    def __init__(self, address: ServerAddress, schema: Any, options: WriteOptions, mapped: Mapped) -> None:
        self._address = address
        self._schema = schema
        self._options = options
        self._mapped = mapped

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedInBatch:
        context = TaskContext.get()
        assert context is not None
        application = self._options.application or context.getLocalProperty(QUERY_ID)
        batch = context.getLocalProperty(BATCH_ID)
        if application is None or batch is None:
            raise RuntimeError("this Spark does not tell its tasks which query and batch they are of")
        name = f"{STAGING_PREFIX}q{hashlib.sha256(application.encode()).hexdigest()[:12]}_{batch}"
        writer = self._writer(name, self._options)
        return StagedInBatch(writer.write(iterator), name, application)

    def commit(self, messages: list[StagedInBatch | None], batchId: int) -> None:
        done = [each for each in messages if each is not None]
        if done:
            options = replace(self._options, application=done[0].application, version=batchId)
            writer = self._writer(done[0].staging, options)
            writer.make_target()
            writer.commit([each.staged for each in done])

    def abort(self, messages: list[StagedInBatch | None], batchId: int) -> None:
        """What is staged stays: the batch is run again, and its staging table goes when it is committed."""

    def _writer(self, staging: str, options: WriteOptions) -> MillraceWriter:
        return MillraceWriter(self._address, self._schema, options, self._mapped, staging)
