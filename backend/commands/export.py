"""`millrace export`: tables and views into files, all as of one epoch.

Parquet is written as it is scanned, by column. CSV and SQL are texts: dates and times are read as such there, so that also those
that no calendar has come out as they are. An SQL file has what CREATE TABLE says and the rows, for `millrace sql`, mysql or mariadb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pymysql.converters import escape_string

from backend.network.server_address import ServerAddress
from backend.spark.scanning import ask, fields_of, parts_of, read_part
from controller.sql.text.lexer import quoted
from dataflow.values.arrow_values import sql_type_of
from dataflow.values.types import TEMPORALS, Kind

HOLD_S = 3600
PARTS = 16
INSERT_BYTES = 500_000
FORMATS = ("parquet", "csv", "sql")

Told = Callable[[str, int], None]
"""told(table, rows)"""


def export(address: ServerAddress, tables: list[str], folder: Path, kind: str, told: Told) -> int:
    """Write each table, or all of the database, to a file of its own in `folder`; the epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    with address.connect() as connection:
        names = tables or _base_tables(connection)
        [(epoch, lease)] = ask(connection, "keep_epoch", HOLD_S)
        try:
            for name in names:
                told(name, _export_table(address, connection, name, (epoch, lease), folder / f"{name}.{kind}", kind))
        finally:
            ask(connection, "forget_epoch", lease)
    return int(epoch)


def _base_tables(connection: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
        return [row[0] for row in cursor.fetchall()]


def _export_table(address: ServerAddress, connection: Any, name: str, epoch: tuple[int, str], path: Path, kind: str) -> int:
    source = ".".join(quoted(each) for each in name.split("."))
    fields = fields_of(connection, f"SELECT * FROM {source}")
    columns = [quoted(each.name) for each in fields]
    if kind != "parquet":
        is_time = [sql_type_of(each).kind in TEMPORALS for each in fields]
        columns = [f"CAST({each} AS CHAR) AS {each}" if cast else each for each, cast in zip(columns, is_time)]
    query = f"SELECT {', '.join(columns)} FROM {source}"
    parts = parts_of(connection, query, PARTS, HOLD_S, epoch)
    batches = (batch for part in parts for batch in read_part(address, part))
    new = path.with_name(path.name + ".part")
    count = _WRITERS[kind](batches, fields_of(connection, query), new, source, connection)
    new.rename(path)
    return count


def _parquet(batches: Iterator[pa.RecordBatch], fields: pa.Schema, path: Path, source: str, connection: Any) -> int:
    count = 0
    with pa.parquet.ParquetWriter(path, fields) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _csv(batches: Iterator[pa.RecordBatch], fields: pa.Schema, path: Path, source: str, connection: Any) -> int:
    """NULL is nothing between two commas, an empty text is two quotes; binary strings are in hexadecimal."""
    count = 0
    texts = pa.schema([pa.field(each.name, pa.string()) for each in fields])
    with pa.csv.CSVWriter(path, texts) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays([_texts(column) for column in batch.columns], schema=texts))
            count += batch.num_rows
    return count


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([None if each is None else each.hex() for each in column.to_pylist()], pa.string())
    if pa.types.is_floating(column.type):
        return pa.array([None if each is None else repr(each) for each in column.to_pylist()], pa.string())
    return column if pa.types.is_string(column.type) else pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.string())


def _sql(batches: Iterator[pa.RecordBatch], fields: pa.Schema, path: Path, source: str, connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE {source}")
        created = cursor.fetchone()[1]
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("SET NAMES utf8mb4;\nSET time_zone = '+00:00';\nSET sql_mode = '';\nSET foreign_key_checks = 0;\n")
        file.write(f"DROP TABLE IF EXISTS {source};\n{created};\n")
        start = f"INSERT INTO {source} ({', '.join(quoted(each.name) for each in fields)}) VALUES\n"
        literals = [_bit if sql_type_of(each).kind is Kind.BIT else _literal for each in fields]
        for batch in batches:
            columns = [list(map(literal, column.to_pylist())) for literal, column in zip(literals, batch.columns)]
            _insert(file, start, [f"({','.join(row)})" for row in zip(*columns)])
            count += batch.num_rows
    return count


def _insert(file: IO[str], start: str, rows: list[str]) -> None:
    pending: list[str] = []
    size = 0
    for row in rows:
        pending.append(row)
        size += len(row)
        if size > INSERT_BYTES:
            file.write(start + ",\n".join(pending) + ";\n")
            pending, size = [], 0
    if pending:
        file.write(start + ",\n".join(pending) + ";\n")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float):
        return repr(value)
    return f"'{escape_string(value)}'" if isinstance(value, str) else str(value)


def _bit(value: int | None) -> str:
    return "NULL" if value is None else f"b'{value:b}'"


_WRITERS: dict[str, Callable[[Iterator[pa.RecordBatch], pa.Schema, Path, str, Any], int]] = {"parquet": _parquet, "csv": _csv, "sql": _sql}
