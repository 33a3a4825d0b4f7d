"""The import of files: CSV, JSON lines and Parquet, several at once; dumps one after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import pymysql

from backend.imports.columns import ImportedTable, describe
from backend.imports.dump import SESSION, InsertedRows, inserted, statements
from backend.imports.files import Dialect, ImportedFile, RowsOfFile, table_sql
from backend.imports.journal import Journal, Mark, Rejected
from backend.imports.loader import Loader
from backend.imports.progress import ImportMeter
from backend.imports.server import error_of, rows_of
from backend.network.server_address import ServerAddress
from controller.sql.text.lexer import quoted

NO_ROW = 0
"""The code of what is no row at all."""
_UNSUPPORTED = 1235
_ALREADY = frozenset({1007, 1008, 1050, 1051, 1060, 1061, 1091})
"""What a definition says that was carried out before the import was killed."""


class FileImport:
    """`table` is that of all files; else each file's name is that of its table."""

    def __init__(self, target: ServerAddress, journal: Journal, jobs: int, chunk_rows: int, meter: ImportMeter) -> None:
        self._target = target
        self._journal = journal
        self._jobs = jobs
        self._chunk_rows = chunk_rows
        self._meter = meter
        self.left_out: list[str] = []

    def run(self, files: Sequence[ImportedFile], table: str | None, key: Sequence[str], dialect: Dialect, has_header: bool) -> None:
        with self._target.within(None).connect() as main:
            if self._target.database is not None:
                rows_of(main, f"CREATE DATABASE IF NOT EXISTS {quoted(self._target.database)}")
            if self._journal.open(main) is None:
                self._journal.begin(main, " ".join(file.name for file in files), {"files": [file.name for file in files]})
            marks = self._journal.marks(main)
            todo: queue.SimpleQueue[tuple[str, ImportedFile, ImportedTable, RowsOfFile]] = queue.SimpleQueue()
            for number, file in enumerate(files):
                unit = f"{number}:{file.name[-150:]}"
                mark = marks.get(unit, Mark())
                if file.format == "sql":
                    self._meter.expect(file.name, 0, mark.stored)
                    if not mark.is_last:
                        self._run_dump(unit, file, mark)
                else:
                    described, rows = self._table(main, file, table or file.stem, key, dialect, has_header)
                    self._meter.expect(file.name, 0, mark.stored)
                    if not mark.is_last:
                        todo.put((unit, file, described, rows))
        self._run_files(todo, marks)
        for file in files:
            self._meter.finish(file.name)

    # CSV, JSON, Parquet

    def _table(
        self, main: Any, file: ImportedFile, name: str, key: Sequence[str], dialect: Dialect, has_header: bool
    ) -> tuple[ImportedTable, RowsOfFile]:
        """The file's table, made if it is not there, with the file's columns."""
        database = self._target.database
        if database is None:
            raise ValueError(f"{file.name}: which --database is it for?")
        there = describe(main, database, name)
        if not has_header:
            if there is None:
                raise ValueError(f"{file.name} has no header: table {name} has to be there")
            dialect = Dialect(dialect.delimiter, tuple(each.name for each in there.columns))
        rows = RowsOfFile(file, dialect)
        if there is None:
            rows_of(main, table_sql(f"{quoted(database)}.{quoted(name)}", rows.sample().schema, key))
            there = describe(main, database, name)
            assert there is not None
        elif file.format == "json":
            rows.columns = [each.name for each in there.columns]
        return there.with_columns(rows.columns), rows

    def _run_files(self, todo: queue.SimpleQueue[tuple[str, ImportedFile, ImportedTable, RowsOfFile]], marks: dict[str, Mark]) -> None:
        failures: list[BaseException] = []

        def work() -> None:
            try:
                while not failures:
                    try:
                        unit, file, table, rows = todo.get_nowait()
                    except queue.Empty:
                        return
                    self._run_file(unit, file, table, rows, marks.get(unit, Mark()))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self._jobs, todo.qsize()))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _run_file(self, unit: str, file: ImportedFile, table: ImportedTable, rows: RowsOfFile, mark: Mark) -> None:
        loader = Loader(self._target, self._journal, partial(self._meter.told, file.name))
        try:
            done, passed = int(mark.place or 0), 0
            for batch in rows.batches(table, self._chunk_rows):
                skipped = min(max(done - passed, 0), batch.num_rows)
                first = passed + skipped
                passed += batch.num_rows
                if skipped < batch.num_rows:
                    mark = loader.store(unit, mark, table, batch.slice(skipped), partial(_place, first))
            bad = [Rejected(table.name, key, NO_ROW, message) for key, message in rows.bad]
            loader.note(unit, Mark(mark.step + 1, str(passed), mark.stored, True), bad)
        finally:
            loader.close()

    # Dumps

    def _run_dump(self, unit: str, file: ImportedFile, mark: Mark) -> None:
        loader = Loader(self._target, self._journal, partial(self._meter.told, file.name))
        done, rows_done = map(int, (mark.place or "0:0").split(":"))
        goes_on = bool(mark.step)
        try:
            number = 0
            for number, statement in enumerate(statements(file.open()), 1):
                if SESSION.match(statement):
                    loader.session.append(statement)
                    rows_of(loader.connection, statement)
                elif number > done:
                    rows = inserted(statement)
                    if rows is None:
                        mark = self._run_statement(loader, unit, mark, number, statement, goes_on)
                    else:
                        mark = self._store(loader, unit, mark, number, rows, rows_done)
                    goes_on, rows_done = False, 0
            loader.note(unit, Mark(mark.step + 1, f"{number}:0", mark.stored, True))
        finally:
            loader.close()

    def _store(self, loader: Loader, unit: str, mark: Mark, number: int, rows: InsertedRows, rows_done: int) -> Mark:
        """`number` counts as done when all of its rows are."""
        [[current]] = rows_of(loader.connection, "SELECT DATABASE()")
        table = describe(loader.connection, rows.database or current or "", rows.table)
        if table is None:
            raise ValueError(f"the dump has rows for table {rows.table}, which is not there")
        if rows.columns:
            table = table.with_columns(rows.columns)
        count = len(rows.rows)
        for first in range(rows_done, count, self._chunk_rows):
            chunk = rows.rows[first : first + self._chunk_rows]
            mark = loader.store(unit, mark, table, table.batch(chunk), partial(_dump_place, number, first, count), verb=rows.verb)
        return mark

    def _run_statement(self, loader: Loader, unit: str, mark: Mark, number: int, statement: str, goes_on: bool) -> Mark:
        after = Mark(mark.step + 1, f"{number}:0", mark.stored)
        try:
            rows_of(loader.connection, statement)
        except pymysql.MySQLError as error:
            code, message = error_of(error)
            if code == _UNSUPPORTED:
                self.left_out.append(f"{' '.join(statement.split())[:60]}…: {message}")
            elif not (goes_on and code in _ALREADY):
                raise
        loader.note(unit, after)
        return after


def _place(first: int, count: int) -> str:
    return str(first + count)


def _dump_place(number: int, first: int, whole: int, count: int) -> str:
    done = first + count
    return f"{number}:0" if done == whole else f"{number - 1}:{done}"
