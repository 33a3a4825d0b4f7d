"""The data source itself: options to readers and writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

from backend.spark.column_types import mapping_of
from backend.spark.options import address_of, is_set, whole_number
from backend.spark.reader import HOLD_S, PARTITIONS, MillraceReader
from backend.spark.scanning import fields_of
from backend.spark.writer import BATCH_ROWS, MillraceWriter, WriteOptions


class MillraceSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("millrace").option("url", "mysql://user:password@host:port/database").option("dbtable", "t").load()`"""

    options: Mapping[str, str]

    @classmethod
    def name(cls) -> str:
        return "millrace"

    def schema(self) -> Any:
        relation, query = self._relation()
        with address_of(self.options).connect() as connection:
            fields = fields_of(connection, query or f"SELECT * FROM {relation}")
        return mapping_of(self.options).schema(fields)

    def reader(self, schema: Any) -> MillraceReader:
        relation, query = self._relation()
        if query is not None and self.schema().fieldNames() != schema.fieldNames():
            query = None
        partitions = whole_number(self.options, "numPartitions", PARTITIONS)
        seconds = whole_number(self.options, "holdSeconds", HOLD_S)
        return MillraceReader(address_of(self.options), relation, query, schema, mapping_of(self.options), max(1, partitions), seconds)

    def writer(self, schema: Any, overwrite: bool) -> MillraceWriter:
        table = self.options.get("dbtable")
        if not table or self.options.get("query"):
            raise ValueError("option dbtable has to name the table to be written")
        application, version = self.options.get("txnAppId"), self.options.get("txnVersion")
        if (application is None) != (version is None):
            raise ValueError("options txnAppId and txnVersion go together")
        options = WriteOptions(
            table,
            overwrite,
            is_set(self.options, "truncate"),
            is_set(self.options, "upsert"),
            max(1, whole_number(self.options, "batchsize", BATCH_ROWS)),
            application,
            whole_number(self.options, "txnVersion", 0),
        )
        return MillraceWriter(address_of(self.options), schema, options, mapping_of(self.options))

    def _relation(self) -> tuple[str, str | None]:
        """What follows FROM, and the whole SELECT if that was given."""
        table, query = self.options.get("dbtable"), self.options.get("query")
        if bool(table) == bool(query):
            raise ValueError("either option dbtable or option query has to be given")
        if table:
            return table, None
        assert query is not None
        query = query.strip().rstrip(";")
        return f"({query}) AS millrace_query", query
