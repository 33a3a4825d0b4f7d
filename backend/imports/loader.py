"""Stores the rows of one unit, step after step, each with its line in the journal.

A step that is refused because of its rows is cut in halves until the row that is at fault is alone; that row is written down as
rejected, all others are stored. A connection that is lost is made again, and the journal tells whether the step was stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pymysql

from backend.imports.columns import ImportedTable
from backend.imports.journal import Journal, Mark, Rejected
from backend.imports.server import ImportConflict, error_of, rows_of
from backend.network.server_address import ServerAddress

SQL_MODE = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
"""Values are stored as they are, or refused; what another server has stored is stored here, too."""
TRIES_MAX = 8
_LOST = frozenset({1053, 1205, 1213, 2003, 2006, 2013, 2055})
_TOO_LARGE = frozenset({1153, 1197})
_AT_FAULT = frozenset(
    {1048, 1062, 1138, 1216, 1264, 1265, 1292, 1300, 1364, 1365, 1366, 1367, 1406, 1411, 1416, 1425, 1426, 1441, 1452, 1525, 1526, 1690, 3140, 3141, 3156, 3157, 3819, 3903, 4025}
)
"""Errors that are about the values of a row."""


class Loader:
    """`told` is called with the numbers of rows that were stored and rejected."""

    def __init__(self, target: ServerAddress, journal: Journal, told: Callable[[int, int], object]) -> None:
        self._target = target
        self._journal = journal
        self._told = told
        self.connection: Any = None
        self.session: list[str] = []
        """Statements that a new connection begins with."""
        self._connect()

    def _connect(self) -> None:
        self.connection = self._target.connect(local_infile=True, sql_mode=SQL_MODE)
        rows_of(self.connection, "SET foreign_key_checks = 0, unique_checks = 0")
        for statement in self.session:
            rows_of(self.connection, statement)

    def close(self) -> None:
        self.connection.close()

    def store(
        self,
        unit: str,
        mark: Mark,
        table: ImportedTable,
        batch: pa.RecordBatch,
        place_after: Callable[[int], str],
        is_last: bool = False,
        verb: str = "INSERT",
    ) -> Mark:
        """The unit's mark afterwards. `place_after(n)` is where it goes on after `n` rows of the batch."""
        insert = table.insert_sql(verb)

        def store_part(mark: Mark, first: int, end: int) -> Mark:
            last = is_last and end == batch.num_rows
            after = Mark(mark.step + 1, place_after(end), mark.stored + end - first, last)
            part = batch.slice(first, end - first)
            try:
                self._step(unit, after, lambda: self._send(part, insert, self._journal.step_sql(unit, after)))
            except pymysql.MySQLError as error:
                code, message = error_of(error)
                if code not in _AT_FAULT and code not in _TOO_LARGE:
                    raise
                if end - first > 1:
                    middle = (first + end) // 2
                    return store_part(store_part(mark, first, middle), middle, end)
                after = Mark(after.step, after.place, mark.stored, last)
                self.note(unit, after, [Rejected(table.name, table.key_text(part, 0), code, message)])
                return after
            self._told(end - first, 0)
            return after

        return store_part(mark, 0, batch.num_rows)

    def note(self, unit: str, mark: Mark, rejected: Sequence[Rejected] = ()) -> None:
        """A step that stores no rows."""
        sql = [self._journal.rejected_sql(unit, mark.step * 1_000_000 + place, each) for place, each in enumerate(rejected)]
        self.execute(unit, mark, sql)
        self._told(0, len(rejected))

    def execute(self, unit: str, mark: Mark, statements: Sequence[str]) -> None:
        """Statements that are one transaction with the step's line."""

        def send() -> None:
            with self.connection.cursor() as cursor:
                cursor.execute("BEGIN")
                try:
                    for statement in (*statements, self._journal.step_sql(unit, mark)):
                        cursor.execute(statement)
                    cursor.execute("COMMIT")
                except pymysql.MySQLError as error:
                    if error_of(error)[0] not in _LOST:
                        cursor.execute("ROLLBACK")
                    raise

        self._step(unit, mark, send)

    def _step(self, unit: str, mark: Mark, send: Callable[[], object]) -> None:
        """Once, whatever happens to the connection on the way."""
        for attempt in range(TRIES_MAX):
            try:
                if attempt:
                    self._connect()
                    if self._journal.has(self.connection, unit, mark.step):
                        return
                send()
                return
            except pymysql.MySQLError as error:
                code = error_of(error)[0]
                if code == 1062 and self._journal.has(self.connection, unit, mark.step):
                    raise ImportConflict(f"another import of the same source is running, or has just ended (unit {unit})") from error
                if code not in _LOST or attempt == TRIES_MAX - 1:
                    raise
                time.sleep(0.1 * 2**attempt)

    def _send(self, batch: pa.RecordBatch, insert: str, step: str) -> None:
        with open(os.memfd_create("rows"), "w+b") as file:
            with pa.ipc.new_stream(file, batch.schema) as stream:
                stream.write_batch(batch)
            file.flush()
            with self.connection.cursor() as cursor:
                cursor.execute("CALL millrace.load_rows(%s, %s, %s)", (f"/proc/self/fd/{file.fileno()}", insert, step))
