"""The data source itself: options to readers and writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSource

from backend.spark.column_types import mapping_of
from backend.spark.options import address_of, is_set, whole_number
from backend.spark.reader import HOLD_S, PARTITIONS, MillraceReader
from backend.spark.scanning import fields_of
from backend.spark.stream_reader import LATEST, MillraceStreamReader, changed_fields
from backend.spark.stream_writer import MillraceStreamWriter
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
            if is_set(self.options, "changes"):
                return mapping_of(self.options).schema(changed_fields(connection, self._changed()))
            fields = fields_of(connection, query or f"SELECT * FROM {relation}")
        return mapping_of(self.options).schema(fields)

    def reader(self, schema: Any) -> MillraceReader:
        relation, query = self._relation()
        if query is not None and self.schema().fieldNames() != schema.fieldNames():
            query = None
        partitions = whole_number(self.options, "numPartitions", PARTITIONS)
        seconds = whole_number(self.options, "holdSeconds", HOLD_S)
        return MillraceReader(address_of(self.options), relation, query, schema, mapping_of(self.options), max(1, partitions), seconds)

    def streamReader(self, schema: Any) -> MillraceStreamReader:
        rows_max = whole_number(self.options, "maxRowsPerTrigger", 0)
        starting = self.options.get("startingEpoch", LATEST).strip().lower()
        fails = is_set(self.options, "failOnDataLoss", True)
        address, mapped = address_of(self.options), mapping_of(self.options)
        return MillraceStreamReader(address, self._changed(), schema, mapped, starting, rows_max, fails)

    def streamWriter(self, schema: Any, overwrite: bool) -> MillraceStreamWriter:
        options = replace(self._write_options(overwrite), truncates=overwrite)
        return MillraceStreamWriter(address_of(self.options), schema, options, mapping_of(self.options))

    def writer(self, schema: Any, overwrite: bool) -> MillraceWriter:
        options = self._write_options(overwrite)
        if (options.application is None) != (self.options.get("txnVersion") is None):
            raise ValueError("options txnAppId and txnVersion go together")
        return MillraceWriter(address_of(self.options), schema, options, mapping_of(self.options))

    def _write_options(self, overwrite: bool) -> WriteOptions:
        table = self.options.get("dbtable")
        if not table or self.options.get("query"):
            raise ValueError("option dbtable has to name the table to be written")
        return WriteOptions(
            table,
            overwrite,
            is_set(self.options, "truncate"),
            is_set(self.options, "upsert"),
            max(1, whole_number(self.options, "batchsize", BATCH_ROWS)),
            self.options.get("txnAppId"),
            whole_number(self.options, "txnVersion", 0),
        )

    def _changed(self) -> str:
        """The table or view whose changes are read."""
        table = self.options.get("dbtable", "").strip()
        if not table or "(" in table:
            raise ValueError("option dbtable has to name the table or view whose changes are read")
        return table

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
