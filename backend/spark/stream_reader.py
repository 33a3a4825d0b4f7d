"""Streams of the data source: the changes of a table or view, batch by batch. Offsets are epochs.

A batch is what has changed after one epoch and up to another. It is the same whenever it is read, so Spark's checkpoint of offsets is all that it
takes to go on after a crash. A stream that begins `latest` or `earliest` begins with an empty batch, whose end says which epoch that was:
Spark asks for the beginning again if the first batch is not done, and has to be told the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymysql
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from backend.network.server_address import ServerAddress
from backend.spark.column_types import Mapped
from backend.spark.scanning import ask, read_batches, resumed

EPOCH, WEIGHT = "millrace_epoch", "millrace_weight"
GONE = 1236
LATEST, EARLIEST = "latest", "earliest"


class ChangesPartition(InputPartition):  # type: ignore[misc]
    def __init__(self, since: int, until: int) -> None:
        super().__init__((since, until))


def changed_fields(connection: Any, name: str) -> pa.Schema:
    [(fields,)] = ask(connection, "describe_changes", name)
    return pa.ipc.read_schema(pa.py_buffer(fields))


class MillraceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Without the weight among its columns, a row that goes is an error: who reads could not tell it from one that comes."""

    def __init__(
        self, address: ServerAddress, name: str, schema: Any, mapped: Mapped, starting: str, rows_max: int, fails_on_loss: bool
    ) -> None:
        if starting not in (LATEST, EARLIEST) and not starting.isdigit():
            raise ValueError("option startingEpoch has to be latest, earliest or a number")
        self._address = address
        self._name = name
        self._schema = schema
        self._mapped = mapped
        self._starting = starting
        self._rows_max = rows_max
        self._fails_on_loss = fails_on_loss
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"epoch": int(self._starting) if self._starting.isdigit() else self._starting}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._rows_max) if self._rows_max else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._position(0, 0)[1]

    def reportLatestOffset(self) -> dict[str, Any]:
        return {"epoch": self._position(0, 0)[1]}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        since = start["epoch"]
        if isinstance(since, str):
            oldest, latest, _ = self._position(0, 0)
            return {"epoch": oldest if since == EARLIEST else latest}
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        found = max(since, self._position(self._readable(since), rows_max)[2])
        return {"epoch": found if self._target is None else max(since, min(found, self._target))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ChangesPartition]:
        since, until = start["epoch"], end["epoch"]
        if isinstance(since, str) or isinstance(until, str) or since >= until:
            return []
        return [ChangesPartition(self._readable(since), until)]

    def read(self, partition: ChangesPartition) -> Iterator[pa.RecordBatch]:
        since, until = partition.value
        sql = "CALL millrace.scan_changes(%s, %s, %s)"
        names = self._schema.fieldNames()
        found = resumed(lambda _: read_batches(self._address, sql, (self._name, since, until)), is_ordered=True)
        with _position_explained():
            for batch in found:
                if WEIGHT not in names and min(batch.column(WEIGHT).to_pylist()) < 0:
                    raise ValueError(f"rows of {self._name} have been changed or deleted: read them with option changes=true")
                yield self._mapped.converted(batch.select(names), self._schema)

    def _readable(self, since: int) -> int:
        """Where to read from: if what follows is not all there any more, and that is no failure, where it begins."""
        return since if self._fails_on_loss else max(since, self._position(0, 0)[0])

    def _position(self, since: int, rows_max: int) -> tuple[int, int, int]:
        """(oldest, latest, next)"""
        with _position_explained(), self._address.connect() as connection:
            [(oldest, latest, following)] = ask(connection, "changes_position", self._name, since, rows_max)
        return oldest, latest, following


@contextmanager
def _position_explained() -> Iterator[None]:
    """Says what can be done about a position that is gone."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        if error.args[0] == GONE:
            raise RuntimeError(f"{error.args[1]}; option failOnDataLoss=false goes on from there") from error
        raise
