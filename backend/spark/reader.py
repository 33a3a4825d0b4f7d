"""Reads of the data source: planned once at one epoch, then part by part in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from backend.network.server_address import ServerAddress
from backend.spark.column_types import Mapped
from backend.spark.filters import conditions_of
from backend.spark.scanning import ScanPart, fields_of, parts_of, read_part
from controller.sql.text.lexer import quoted
from dataflow.values.arrow_values import sql_type_of

PARTITIONS = 8
HOLD_S = 600


class ScanPartition(InputPartition):  # type: ignore[misc]
    def __init__(self, part: ScanPart) -> None:
        super().__init__(part)


class PushedFilters:
    """`pushFilters` of a reader. Spark refuses a reader with one of its own where pushing is switched off, and knows it by `__func__`."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: MillraceReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Any]) -> list[Any]:
        return self._reader.push(filters)


class MillraceReader(DataSourceReader):  # type: ignore[misc]
    """`relation` is what follows FROM; `query` is the whole SELECT, where all its columns are wanted and nothing is filtered."""

    def __init__(self, address: ServerAddress, relation: str, query: str | None, schema: Any, mapped: Mapped, partitions: int, hold_s: int) -> None:
        self._address = address
        self._relation = relation
        self._query = query
        self._schema = schema
        self._mapped = mapped
        self._partitions = partitions
        self._hold_s = hold_s
        self._conditions: list[str] = []
        self.pushFilters = PushedFilters(self)

    def push(self, filters: list[Any]) -> list[Any]:
        with self._address.connect() as connection:
            fields = fields_of(connection, self._select())
        compared = {}
        for field, wanted in zip(fields, self._schema):
            kind = sql_type_of(field)
            if not isinstance(wanted.dataType, spark.BooleanType):
                compared[wanted.name] = kind
        self._conditions, left = conditions_of(filters, compared)
        return left

    def partitions(self) -> list[ScanPartition]:
        with self._address.connect() as connection:
            return [ScanPartition(part) for part in parts_of(connection, self._select(), self._partitions, self._hold_s)]

    def read(self, partition: ScanPartition) -> Iterator[pa.RecordBatch]:
        for batch in read_part(self._address, partition.value):
            yield self._mapped.converted(batch, self._schema)

    def _select(self) -> str:
        if self._query is not None and not self._conditions:
            return self._query
        columns = ", ".join(quoted(each.name) for each in self._schema)
        where = f" WHERE {' AND '.join(f'({each})' for each in self._conditions)}" if self._conditions else ""
        return f"SELECT {columns} FROM {self._relation}{where}"
