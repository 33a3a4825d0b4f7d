"""Writes of the data source: tasks stage rows in a table beside the target, one transaction publishes them.

- Each attempt of a task stages under a name of its own; only those that Spark says have succeeded are published.
- The transaction also removes the staging table's *seal*, so that who lost its connection at COMMIT can see whether it happened.
- With `txnAppId` and `txnVersion` it also writes down the version; a job whose version is not newer writes nothing.
- Overwriting without `truncate` builds a new table of the DataFrame's columns, which then takes the target's name.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pymysql
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from backend.network.server_address import ServerAddress
from backend.spark.column_types import Mapped
from backend.spark.scanning import LOST, fields_of
from controller.sql.text.lexer import quoted
from dataflow.values.arrow_values import sql_type_of
from dataflow.values.types import Kind

BATCH_ROWS = 1000
STAGING_PREFIX = "millrace_staged_"
STAGING_S_MAX = 86_400
"""What a job that died has left is removed by another one after so long."""
COMMITS = "millrace_spark_commits"
SEAL = ""
KEYS = "millrace_attempt VARCHAR(32) NOT NULL, millrace_row BIGINT NOT NULL"
PRIMARY = "PRIMARY KEY (millrace_attempt, millrace_row)"
TRIES_MAX = 5
PAUSE_S = 0.5
DEADLOCK = 1213
_COLUMN_TYPES: dict[type, str] = {
    spark.ByteType: "TINYINT",
    spark.ShortType: "SMALLINT",
    spark.IntegerType: "INT",
    spark.LongType: "BIGINT",
    spark.FloatType: "FLOAT",
    spark.DoubleType: "DOUBLE",
    spark.BooleanType: "BIT(1)",
    spark.StringType: "LONGTEXT",
    spark.BinaryType: "LONGBLOB",
    spark.DateType: "DATE",
    spark.TimestampType: "TIMESTAMP(6)",
    spark.TimestampNTZType: "DATETIME(6)",
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    table: str
    overwrites: bool
    truncates: bool
    upserts: bool
    batch_rows: int
    application: str | None
    version: int


@dataclass(frozen=True)
class Staged(WriterCommitMessage):  # type: ignore[misc]
    """The attempt whose rows count, and how many they are."""

    attempt: str
    rows: int


class MillraceWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Made once for a job, and sent to its tasks and to who commits. `staging` is empty if the job has been done before.

    Of a stream (`staged`), each task and who commits has one of its own: the first that comes makes the table that is to be staged in.
    """

    def __init__(self, address: ServerAddress, schema: Any, options: WriteOptions, mapped: Mapped, staged: str = "") -> None:
        self._address = address
        self._options = options
        self._mapped = mapped
        self._columns = ", ".join(quoted(name) for name in schema.fieldNames())
        self._definition = ", ".join(f"{quoted(each.name)} {column_type(each)}" for each in schema)
        self._count = len(schema)
        database, _, name = options.table.rpartition(".")
        self._prefix = f"{database}." if database else ""
        self._name = name.strip("`")
        self.staging = ""
        self._kinds: list[Kind] = []
        with address.connect() as connection:
            if staged:
                self.staging = f"{self._prefix}{staged}"
                self._begin_batch(connection)
            elif not self._is_done(connection):
                self._begin(connection)

    # --- before the tasks

    def _is_done(self, connection: Any, lock: bool = False) -> bool:
        """Whether the version of this job, or a newer one, was written before."""
        if self._options.application is None:
            return False
        sql = f"SELECT version FROM {self._prefix}{COMMITS} WHERE application = %s{' FOR UPDATE' if lock else ''}"
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, (self._options.application,))
            except pymysql.err.ProgrammingError:  # nobody has asked for it yet
                return False
            found = cursor.fetchone()
        return found is not None and found[0] >= self._options.version

    def _begin_batch(self, connection: Any) -> None:
        """Of a stream: every task may be the first, and all make the same."""
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {self.staging} ({KEYS}, {self._definition}, {PRIMARY})")
            cursor.execute(f"INSERT IGNORE INTO {self.staging} (millrace_attempt, millrace_row) VALUES (%s, 0)", (SEAL,))
        self._learn_kinds(connection)

    def make_target(self) -> None:
        """Of a stream: before its batch is committed."""
        with self._address.connect() as connection, connection.cursor() as cursor:
            self._make_commits(cursor)
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._options.table} ({self._definition})")

    def _make_commits(self, cursor: Any) -> None:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {self._prefix}{COMMITS} (application VARCHAR(255) COLLATE utf8mb4_bin PRIMARY KEY, version BIGINT NOT NULL)"
        )

    def _learn_kinds(self, connection: Any) -> None:
        fields = fields_of(connection, f"SELECT {self._columns} FROM {self.staging}")
        self._kinds = [sql_type_of(each).kind for each in fields]

    def _begin(self, connection: Any) -> None:
        target = self._options.table
        with connection.cursor() as cursor:
            if self._options.application is not None:
                self._make_commits(cursor)
            replaces = self._options.overwrites and not self._options.truncates
            if not replaces:
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {target} ({self._definition})")
            self._remove_old(cursor)
            self.staging = f"{self._prefix}{STAGING_PREFIX}{int(time.time())}_{uuid.uuid4().hex[:12]}"
            if replaces:
                cursor.execute(f"CREATE TABLE {self.staging} ({KEYS}, {self._definition}, {PRIMARY})")
            else:
                cursor.execute(f"CREATE TABLE {self.staging} ({KEYS}, {PRIMARY}) SELECT {self._columns} FROM {target} LIMIT 0")
                self._loosen(cursor)
            cursor.execute(f"INSERT INTO {self.staging} (millrace_attempt, millrace_row) VALUES (%s, 0)", (SEAL,))
        self._learn_kinds(connection)

    def _loosen(self, cursor: Any) -> None:
        """Columns of the staging table may be NULL: that the target's may not is said when rows get there."""
        cursor.execute(f"SHOW COLUMNS FROM {self.staging}")
        changes = [
            f"MODIFY COLUMN {quoted(name)} {kind} NULL"
            for name, kind, nullable, *_ in cursor.fetchall()
            if nullable == "NO" and not name.startswith("millrace_")
        ]
        if changes:
            cursor.execute(f"ALTER TABLE {self.staging} {', '.join(changes)}")

    def _remove_old(self, cursor: Any) -> None:
        within = f" FROM {self._prefix.rstrip('.')}" if self._prefix else ""
        cursor.execute(f"SHOW TABLES{within} LIKE '{STAGING_PREFIX}%'")
        for (name,) in cursor.fetchall():
            begun = name.removeprefix(STAGING_PREFIX).partition("_")[0]
            if begun.isdigit() and int(begun) < time.time() - STAGING_S_MAX:
                cursor.execute(f"DROP TABLE IF EXISTS {self._prefix}{quoted(name)}")

    # --- in the tasks

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        attempt, count = uuid.uuid4().hex, 0
        if not self.staging:
            return Staged(attempt, 0)
        marks = ", ".join(["%s"] * (self._count + 2))
        sql = f"INSERT INTO {self.staging} (millrace_attempt, millrace_row, {self._columns}) VALUES ({marks})"
        with self._address.connect() as connection, connection.cursor() as cursor:
            for batch in iterator:
                rows = list(zip(*[self._values(column, kind) for column, kind in zip(batch.columns, self._kinds)]))
                for first in range(0, len(rows), self._options.batch_rows):
                    piece = [(attempt, count + place, *row) for place, row in enumerate(rows[first : first + self._options.batch_rows])]
                    cursor.executemany(sql, piece)
                    count += len(piece)
        return Staged(attempt, count)

    def _values(self, column: pa.Array, kind: Kind) -> list[Any]:
        """As the driver sends them: moments of a TIMESTAMP in UTC, those of a DATETIME in local time."""
        if pa.types.is_timestamp(column.type):
            if column.type.tz is not None and kind is not Kind.TIMESTAMP:
                column = pc.local_timestamp(column.cast(pa.timestamp("us", self._mapped.time_zone)))
            elif column.type.tz is None and kind is Kind.TIMESTAMP:
                column = pc.assume_timezone(column, self._mapped.time_zone, ambiguous="earliest", nonexistent="latest")
            column = column.cast(pa.timestamp("us", "UTC")) if column.type.tz is not None else column
            return [None if each is None else each.replace(tzinfo=None) for each in column.to_pylist()]
        found: list[Any] = column.to_pylist()
        return found

    # --- after the tasks

    def commit(self, messages: list[Staged | None]) -> None:
        if not self.staging:
            return
        attempts = [each.attempt for each in messages if each is not None]
        replaces = self._options.overwrites and not self._options.truncates
        for attempt in range(TRIES_MAX):
            try:
                with self._address.connect() as connection:
                    self._replace(connection, attempts) if replaces else self._publish(connection, attempts)
                    break
            except (pymysql.err.Error, OSError) as error:
                code = error.args[0] if isinstance(error, pymysql.err.Error) and error.args else 0
                if attempt == TRIES_MAX - 1 or not (code in LOST or code == DEADLOCK or isinstance(error, OSError | pymysql.err.InterfaceError)):
                    self.abort(messages)
                    raise
            time.sleep(PAUSE_S * (attempt + 1))
        self._drop()

    def abort(self, messages: list[Staged | None]) -> None:
        if self.staging:
            with contextlib.suppress(pymysql.err.Error, OSError):
                self._drop()

    def _drop(self) -> None:
        with self._address.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {self.staging}")

    def _publish(self, connection: Any, attempts: list[str]) -> None:
        target = self._options.table
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"DELETE FROM {self.staging} WHERE millrace_attempt = %s", (SEAL,))
            if not cursor.rowcount or self._is_done(connection, lock=True):  # the COMMIT before this one has happened
                cursor.execute("ROLLBACK")
                return
            if self._options.overwrites:
                cursor.execute(f"DELETE FROM {target}")
            self._insert(cursor, target, attempts)
            if self._options.application is not None:
                record = f"INSERT INTO {self._prefix}{COMMITS} VALUES (%s, %s) ON DUPLICATE KEY UPDATE version = VALUES(version)"
                cursor.execute(record, (self._options.application, self._options.version))
            cursor.execute("COMMIT")

    def _insert(self, cursor: Any, target: str, attempts: list[str]) -> None:
        if not attempts:
            return
        update = ""
        if self._options.upserts:
            update = " ON DUPLICATE KEY UPDATE " + ", ".join(f"{each} = VALUES({each})" for each in self._columns.split(", "))
        marks = ", ".join(["%s"] * len(attempts))
        cursor.execute(
            f"INSERT INTO {target} ({self._columns}) SELECT {self._columns} FROM {self.staging} WHERE millrace_attempt IN ({marks}){update}", attempts
        )

    def _replace(self, connection: Any, attempts: list[str]) -> None:
        """The new table takes the target's name in one step; done twice, it is the same."""
        new, old = (f"{self.staging}_{each}" for each in ("new", "old"))
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {new}, {old}")
            cursor.execute(f"CREATE TABLE {new} ({self._definition})")
            for attempt in attempts:  # nobody reads it yet: it need not be one transaction
                self._insert(cursor, new, [attempt])
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._options.table} ({self._definition})")
            cursor.execute(f"RENAME TABLE {self._options.table} TO {old}, {new} TO {self._options.table}")
            if self._options.application is not None:
                cursor.execute(f"REPLACE INTO {self._prefix}{COMMITS} VALUES (%s, %s)", (self._options.application, self._options.version))
            cursor.execute(f"DROP TABLE IF EXISTS {old}")


def column_type(field: Any) -> str:
    kind = field.dataType
    found = f"DECIMAL({kind.precision}, {kind.scale})" if isinstance(kind, spark.DecimalType) else _COLUMN_TYPES.get(type(kind))
    if found is None:
        raise ValueError(f"column {field.name}: millrace has no type for {kind.simpleString()}")
    return found if field.nullable else f"{found} NOT NULL"
