"""MySQL's types as Spark's JDBC source maps them, and scanned columns as Spark wants them.

The options `tinyInt1isBit`, `yearIsDateType` and `preferTimestampNTZ` mean what they mean there. A DATETIME that becomes a
TimestampType is read as local time, as drivers do: in `timeZone`, or that of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from backend.spark.options import is_set
from dataflow.values.arrow_values import sql_type_of
from dataflow.values.types import BLOBS, INTEGERS, Kind, SqlType

_DIGITS_MAX = 38
_INTEGERS: dict[Kind, tuple[Any, Any]] = {
    Kind.TINYINT: (spark.ByteType(), spark.ShortType()),
    Kind.SMALLINT: (spark.ShortType(), spark.IntegerType()),
    Kind.MEDIUMINT: (spark.IntegerType(), spark.IntegerType()),
    Kind.INT: (spark.IntegerType(), spark.LongType()),
    Kind.BIGINT: (spark.LongType(), spark.DecimalType(20, 0)),
}


@dataclass(frozen=True, slots=True)
class Mapped:
    """How types are mapped, from a source's options."""

    tiny_is_bit: bool = True
    year_is_date: bool = True
    prefers_ntz: bool = False
    time_zone: str = "UTC"

    def schema(self, fields: pa.Schema) -> Any:
        return spark.StructType([spark.StructField(each.name, self.type_of(sql_type_of(each)), each.nullable) for each in fields])

    def type_of(self, kind: SqlType) -> Any:
        if kind.kind in INTEGERS:
            if kind.kind is Kind.TINYINT and kind.length == 1 and not kind.unsigned and self.tiny_is_bit:
                return spark.BooleanType()
            return _INTEGERS[kind.kind][kind.unsigned]
        match kind.kind:
            case Kind.BIT:
                return spark.BooleanType() if (kind.length or 1) == 1 else spark.BinaryType()
            case Kind.DECIMAL:
                return spark.DecimalType(min(kind.length or 10, _DIGITS_MAX), min(kind.scale, _DIGITS_MAX))
            case Kind.FLOAT:
                return spark.DoubleType() if kind.unsigned else spark.FloatType()
            case Kind.DOUBLE:
                return spark.DoubleType()
            case Kind.DATE:
                return spark.DateType()
            case Kind.TIMESTAMP:
                return spark.TimestampType()
            case Kind.DATETIME | Kind.TIME:
                return spark.TimestampNTZType() if self.prefers_ntz else spark.TimestampType()
            case Kind.YEAR:
                return spark.DateType() if self.year_is_date else spark.IntegerType()
            case each if each in BLOBS:
                return spark.BinaryType()
        return spark.StringType()

    def converted(self, batch: pa.RecordBatch, schema: Any) -> pa.RecordBatch:
        """A scanned batch with the columns of `schema`, which it has in the same order."""
        wanted = to_arrow_schema(schema, timezone="UTC")
        columns = [self.column(column, sql_type_of(field), target.type) for column, field, target in zip(batch.columns, batch.schema, wanted)]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def column(self, values: pa.Array, kind: SqlType, wanted: pa.DataType) -> pa.Array:
        if pa.types.is_boolean(wanted):
            return pc.not_equal(values, pa.scalar(0, values.type))
        if kind.kind is Kind.BIT and pa.types.is_binary(wanted):
            return _bits(values, ((kind.length or 1) + 7) // 8)
        if kind.kind is Kind.YEAR and pa.types.is_date(wanted):
            return _new_years(values)
        if kind.kind is Kind.TIME and pa.types.is_timestamp(wanted):
            values = values.view(pa.int64()).view(pa.timestamp("us"))
        if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted) and values.type.tz is None and wanted.tz is not None:
            local = pc.assume_timezone(values, self.time_zone, ambiguous="earliest", nonexistent="latest")
            return local.cast(wanted)
        return values if values.type == wanted else values.cast(wanted)


def mapping_of(options: Mapping[str, str]) -> Mapped:
    return Mapped(
        is_set(options, "tinyInt1isBit", True),
        is_set(options, "yearIsDateType", True),
        is_set(options, "preferTimestampNTZ", False),
        options.get("timeZone") or local_zone(),
    )


def local_zone() -> str:
    """The machine's time zone, as a name."""
    if zone := os.environ.get("TZ", "").removeprefix(":"):
        return zone
    link = Path("/etc/localtime")
    name = str(link.resolve()).partition("zoneinfo/")[2] if link.exists() else ""
    return name or "UTC"


def _bits(values: pa.Array, width: int) -> pa.Array:
    numbers = np.ascontiguousarray(values.fill_null(0).to_numpy(zero_copy_only=False).astype(">u8"))
    octets = numbers.view(np.uint8).reshape(-1, 8)[:, 8 - width :]
    found = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(octets.tobytes())]).cast(pa.binary())
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.binary()))


def _new_years(values: pa.Array) -> pa.Array:
    """The first day of each year; YEAR 0000 is none."""
    years = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    days = (years - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int32)
    return pa.array(days, pa.int32(), mask=years == 0).view(pa.date32())
