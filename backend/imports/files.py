"""Files as a source: CSV, JSON lines and Parquet, here or where pyarrow's file systems reach (s3://, hdfs://, gs://).

A file is one unit, read in order; its place is the number of its rows that are done. CSV and JSON are read as texts and given the types of the
table's columns, so a value means what it would mean in an INSERT; Parquet has types of its own. Lines that are no rows (too few
fields, no JSON) are found again whenever the file is read, and written down with the unit's last step.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.fs as pa_fs
import pyarrow.parquet as pa_parquet

from backend.imports.columns import ImportedTable

BLOCK_BYTES = 4 << 20
SAMPLE_ROWS = 10_000
FORMATS = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".sql": "sql"}
COMPRESSIONS = frozenset({".gz", ".bz2", ".zst", ".lz4"})
NULLS = ["", "NULL", "\\N"]

_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class ImportedFile:
    name: str
    path: str
    system: pa_fs.FileSystem
    format: str

    @property
    def stem(self) -> str:
        path = PurePosixPath(self.path)
        return PurePosixPath(path.stem).stem if path.suffix in COMPRESSIONS else path.stem

    def open(self) -> Any:
        """A stream of the file's bytes, not compressed any more."""
        return self.system.open_input_stream(self.path, compression="detect")

    @property
    def size(self) -> int:
        return int(self.system.get_file_info(self.path).size or 0)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How CSV is written. `names` are those of the columns of a file without a header."""

    delimiter: str = ","
    names: tuple[str, ...] = ()


def find_files(patterns: Sequence[str], format: str | None = None) -> list[ImportedFile]:
    """The files that names and patterns stand for, each once."""
    found: dict[str, ImportedFile] = {}
    for pattern in patterns:
        if "://" in pattern:
            system, path = pa_fs.FileSystem.from_uri(pattern)
            paths = _remote(system, path)
        else:
            system = pa_fs.LocalFileSystem()
            paths = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
        if not paths:
            raise ValueError(f"no file is named {pattern}")
        for path in paths:
            found[path] = ImportedFile(path if "://" not in pattern else f"{pattern.partition('://')[0]}://{path}", path, system, format or _format(path))
    return list(found.values())


def _remote(system: pa_fs.FileSystem, pattern: str) -> list[str]:
    if not glob.has_magic(pattern):
        return [pattern]
    folder = pattern[: next(place for place, each in enumerate(pattern) if each in "*?[")].rpartition("/")[0]
    infos = system.get_file_info(pa_fs.FileSelector(folder, recursive=True))
    return sorted(info.path for info in infos if info.is_file and fnmatch.fnmatch(info.path, pattern))


def _format(path: str) -> str:
    pure = PurePosixPath(path)
    suffix = PurePosixPath(pure.stem).suffix if pure.suffix in COMPRESSIONS else pure.suffix
    found = FORMATS.get(suffix.lower())
    if found is None:
        raise ValueError(f"{path}: say what it is with --format csv, tsv, json, parquet or sql")
    return found


class RowsOfFile:
    """Iterates over record batches whose columns are `columns`; afterwards `bad` has the lines that are no rows."""

    def __init__(self, file: ImportedFile, dialect: Dialect) -> None:
        self._file = file
        self._dialect = dialect
        self.bad: list[tuple[str, str]] = []
        self.columns = self.sample().schema.names

    def sample(self) -> pa.Table:
        """The first rows, with the types that they seem to have."""
        if self._file.format == "parquet":
            with self._file.system.open_input_file(self._file.path) as stream:
                return pa_parquet.ParquetFile(stream).schema_arrow.empty_table()
        if self._file.format == "json":
            rows = next(self._documents(SAMPLE_ROWS), [])
            names = list(dict.fromkeys(name for row in rows for name in row))
            return pa.table({name: _inferred([row.get(name) for row in rows]) for name in names})
        with self._csv(None) as reader:
            try:
                return pa.Table.from_batches([reader.read_next_batch()])
            except StopIteration:
                return reader.schema.empty_table()

    def batches(self, table: ImportedTable, count: int) -> Iterator[pa.RecordBatch]:
        """All rows of the file, as the table's columns, which are those of the file."""
        self.bad = []
        match self._file.format:
            case "parquet":
                with self._file.system.open_input_file(self._file.path) as stream:
                    for batch in pa_parquet.ParquetFile(stream).iter_batches(count):
                        yield pa.RecordBatch.from_arrays([_plain(each) for each in batch.columns], batch.schema.names)
            case "json":
                for rows in self._documents(count, frozenset(self.columns)):
                    yield pa.RecordBatch.from_arrays(
                        [column.array([_text(row.get(name)) for row in rows]) for name, column in zip(self.columns, table.columns)], self.columns
                    )
            case _:
                with self._csv({name: pa.string() for name in self.columns}) as reader:
                    for batch in reader:
                        typed = [column.typed(texts) for column, texts in zip(table.columns, batch.columns)]
                        whole = pa.RecordBatch.from_arrays(typed, self.columns)
                        yield from (whole.slice(first, count) for first in range(0, whole.num_rows, count))

    def _csv(self, types: dict[str, pa.DataType] | None) -> Any:
        names = self._dialect.names
        delimiter = "\t" if self._file.format == "tsv" and self._dialect.delimiter == "," else self._dialect.delimiter

        def bad(row: Any) -> str:
            if types is not None:
                self.bad.append((f"line {row.text[:200]!r}", f"{row.actual_columns} fields where {row.expected_columns} are wanted"))
            return "skip"

        return pa_csv.open_csv(
            self._file.open(),
            pa_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=list(names) or None),
            pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=bad),
            pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=NULLS),
        )

    def _documents(self, count: int, known: frozenset[str] | None = None) -> Iterator[list[dict[str, Any]]]:
        """Objects of JSON, one a line; none that has fields which are not known."""
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(_lines(self._file.open()), 1):
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self.bad.append((f"line {number}", str(error)))
                continue
            if known is not None and not row.keys() <= known:
                self.bad.append((f"line {number}", f"there is no column {', '.join(sorted(row.keys() - known))}"))
                continue
            rows.append(row)
            if len(rows) == count:
                yield rows
                rows = []
        if rows:
            yield rows


def _lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    with stream:
        while block := stream.read(BLOCK_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
    if rest:
        yield rest


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else msgspec.json.encode(value).decode()


def _inferred(values: Sequence[Any]) -> pa.Array:
    """Only its type counts: lists and objects may be mixed."""
    if any(isinstance(value, dict | list) for value in values):
        return pa.nulls(len(values), pa.list_(pa.null()))
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_text(value) for value in values], pa.string())


def _plain(array: pa.Array) -> pa.Array:
    """Lists and objects as JSON."""
    if pa.types.is_nested(array.type):
        return pa.array([None if each is None else msgspec.json.encode(each).decode() for each in array.to_pylist()], pa.string())
    return array


def table_sql(database_table: str, schema: pa.Schema, key: Sequence[str]) -> str:
    """CREATE TABLE for columns of these types."""
    missing = [name for name in key if name not in schema.names]
    if missing:
        raise ValueError(f"there is no column {', '.join(missing)}; there are {', '.join(schema.names)}")
    parts = [f"`{each.name.replace('`', '``')}` {mysql_type(each.type, each.name in key)}" for each in schema]
    parts += [f"PRIMARY KEY ({', '.join(f'`{name}`' for name in key)})"] if key else []
    return f"CREATE TABLE {database_table} ({', '.join(parts)})"


def mysql_type(kind: pa.DataType, is_key: bool = False) -> str:
    """The type of MySQL that holds all values of the Arrow type."""
    names = {1: "TINYINT", 2: "SMALLINT", 4: "INT", 8: "BIGINT"}
    if pa.types.is_boolean(kind):
        return "TINYINT(1)"
    if pa.types.is_integer(kind):
        return names[kind.bit_width // 8] + (" UNSIGNED" if pa.types.is_unsigned_integer(kind) else "")
    if pa.types.is_floating(kind):
        return "DOUBLE" if kind.bit_width == 64 else "FLOAT"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({min(kind.precision, 65)}, {min(max(kind.scale, 0), 30)})"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return "DATETIME(6)" if kind.unit != "s" else "DATETIME"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "TIME(6)"
    if pa.types.is_dictionary(kind):
        return mysql_type(kind.value_type, is_key)
    if pa.types.is_nested(kind):
        return "JSON"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return f"VARBINARY({_KEY_LENGTH})" if is_key else "LONGBLOB"
    return f"VARCHAR({_KEY_LENGTH})" if is_key else "LONGTEXT"
