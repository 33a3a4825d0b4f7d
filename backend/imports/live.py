"""The import of a live MySQL or MariaDB: schema, then all units, by several connections at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pymysql

from backend.imports.columns import ImportedTable, describe
from backend.imports.journal import Journal, Mark
from backend.imports.loader import Loader
from backend.imports.mysql_source import Binlog, KeyRangeUnit, LiveSource, place_of
from backend.imports.progress import ImportMeter
from backend.imports.server import CannotImport, error_of, rows_of
from backend.network.server_address import ServerAddress
from controller.sql.text.lexer import quoted

UNIT_PARTS = 8
"""Large tables are cut into so many ranges."""


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What is in the journal from the beginning, so that an import that goes on does what it set out to do.

    `binlog` is where the first snapshot was taken; `moments`, of tables without a key, where theirs was.
    """

    tables: tuple[str, ...]
    units: tuple[KeyRangeUnit, ...]
    binlog: str | None
    moments: dict[str, str]

    @classmethod
    def of(cls, facts: dict[str, Any]) -> LivePlan:
        return cls(tuple(facts["tables"]), tuple(KeyRangeUnit(**each) for each in facts["units"]), facts["binlog"], facts["moments"])


class LiveImport:
    def __init__(self, source: LiveSource, target: ServerAddress, journal: Journal, jobs: int, chunk_rows: int, meter: ImportMeter) -> None:
        assert target.database is not None
        self._source = source
        self._target = target
        self._database = target.database
        self._journal = journal
        self._jobs = jobs
        self._chunk_rows = chunk_rows
        self._meter = meter
        self.warnings: list[str] = []
        self.left_out: list[str] = []

    def run(self, excluded: Sequence[str] = ()) -> LivePlan:
        """Until all rows of the snapshot are stored."""
        main = self._target.within(None).connect(sql_mode="")
        try:
            facts = self._journal.open(main)
            snapshots, binlog = self._source.snapshots(self._jobs)
            if binlog is None and len(snapshots) < self._jobs:
                self.warnings.append("the source does not allow FLUSH TABLES WITH READ LOCK: one connection reads all tables")
            plan = LivePlan.of(facts) if facts is not None else self._plan(main, excluded, binlog)
            if facts is not None:
                self._say_moments(plan, binlog)
            self._make_tables(main, plan.tables)
            plan = self._begin_again(main, plan, binlog)
            self._copy(plan, snapshots, self._journal.marks(main))
            self._make_views(main, excluded)
            self.left_out += self._source.left_out()
            return plan
        finally:
            main.close()

    def _plan(self, main: Any, excluded: Sequence[str], binlog: Binlog | None) -> LivePlan:
        tables = {name: rows for name, rows in self._source.tables().items() if name not in excluded}
        if not tables:
            raise CannotImport(f"{self._source.address} has no tables")
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        there = {name for (name,) in rows_of(main, sql, (self._database,))} & tables.keys()
        if there:
            raise CannotImport(f"database {self._database} has tables of these names: {', '.join(sorted(there))}; drop them, or --exclude them")
        units = [unit for name, rows in tables.items() for unit in self._source.units(name, rows, UNIT_PARTS if self._jobs > 1 else 1)]
        plan = LivePlan(tuple(tables), tuple(units), None if binlog is None else str(binlog), {})
        self._journal.begin(main, str(self._source.address), asdict(plan))
        return plan

    def _say_moments(self, plan: LivePlan, binlog: Binlog | None) -> None:
        """An import that goes on has a new snapshot."""
        if plan.binlog is None or binlog is None:
            self.warnings.append("rows that were stored before are as of an earlier moment; without a binlog nobody knows whether the source has changed since")
        elif str(binlog) != plan.binlog:
            self.warnings.append("rows that were stored before are as of an earlier moment, and the source has changed since; --follow brings them up to date")

    def _make_tables(self, main: Any, tables: Sequence[str]) -> None:
        problems = []
        try:
            options = self._source.database_options()
            rows_of(main, f"CREATE DATABASE IF NOT EXISTS {quoted(self._database)} {options}")
        except pymysql.MySQLError as error:
            self.warnings.append(f"database {self._database} is made with the target's own character set: {error_of(error)[1]}")
            rows_of(main, f"CREATE DATABASE IF NOT EXISTS {quoted(self._database)}")
        rows_of(main, f"USE {quoted(self._database)}")
        rows_of(main, "SET foreign_key_checks = 0")
        for table in tables:
            try:
                rows_of(main, self._source.table_sql(table))
            except pymysql.MySQLError as error:
                code, message = error_of(error)
                if code != 1050:  # it was made before the import was killed
                    problems.append(f"{table}: {message} ({code})")
        if problems:
            raise CannotImport("millrace does not have what these tables need; --exclude them to go on without:\n  " + "\n  ".join(problems))

    def _begin_again(self, main: Any, plan: LivePlan, binlog: Binlog | None) -> LivePlan:
        """Tables without a key have no order to go on in: what is stored of one that is not complete goes."""
        marks = self._journal.marks(main)
        moments = dict(plan.moments)
        for unit in plan.units:
            if marks.get(unit.name, Mark()).is_last or self._described(main, unit.table).key:
                continue
            if unit.name in marks:
                self._journal.begin_again(main, unit.name)
            if unit.name in marks or plan.moments.get(unit.table) is not None:
                rows_of(main, f"TRUNCATE TABLE {quoted(unit.table)}")
            moments[unit.table] = "" if binlog is None else str(binlog)
        plan = LivePlan(plan.tables, plan.units, plan.binlog, moments)
        self._journal.amend(main, asdict(plan))
        return plan

    def _described(self, main: Any, table: str) -> ImportedTable:
        found = describe(main, self._database, table)
        if found is None:
            raise CannotImport(f"table {table} is not there any more")
        return found

    def _copy(self, plan: LivePlan, snapshots: Sequence[Any], marks: dict[str, Mark]) -> None:
        todo: queue.SimpleQueue[KeyRangeUnit] = queue.SimpleQueue()
        for table in plan.tables:
            units = [unit for unit in plan.units if unit.table == table]
            self._meter.expect(table, sum(unit.rows for unit in units), sum(marks.get(unit.name, Mark()).stored for unit in units))
        for unit in sorted(plan.units, key=lambda unit: -unit.rows):
            if not marks.get(unit.name, Mark()).is_last:
                todo.put(unit)
        failures: list[BaseException] = []
        threads = [threading.Thread(target=self._copy_units, args=(todo, each, marks, failures), daemon=True) for each in snapshots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        for table in plan.tables:
            self._meter.finish(table)

    def _copy_units(self, todo: queue.SimpleQueue[KeyRangeUnit], snapshot: Any, marks: dict[str, Mark], failures: list[BaseException]) -> None:
        try:
            while not failures:
                try:
                    unit = todo.get_nowait()
                except queue.Empty:
                    break
                self._copy_unit(unit, snapshot, marks.get(unit.name, Mark()), failures)
        except BaseException as error:
            failures.append(error)
        finally:
            snapshot.close()

    def _copy_unit(self, unit: KeyRangeUnit, snapshot: Any, mark: Mark, failures: Sequence[BaseException]) -> None:
        loader = Loader(self._target, self._journal, partial(self._meter.told, unit.table))
        try:
            table = self._described(loader.connection, unit.table)
            for rows in self._source.read(snapshot, table, unit, mark.place, self._chunk_rows):
                if failures:
                    return
                batch = table.batch(rows)
                mark = loader.store(unit.name, mark, table, batch, lambda count, rows=rows: place_of(table, rows[count - 1]))  # type: ignore[misc]
            loader.note(unit.name, Mark(mark.step + 1, mark.place, mark.stored, True))
        finally:
            loader.close()

    def _make_views(self, main: Any, excluded: Sequence[str]) -> None:
        """Views may read each other, so they are tried until no more of them can be made."""
        todo = {name: sql for name, sql in self._source.views().items() if name not in excluded}
        rows_of(main, f"USE {quoted(self._database)}")
        while todo:
            failed: dict[str, str] = {}
            for name, sql in todo.items():
                try:
                    rows_of(main, sql)
                except pymysql.MySQLError as error:
                    code, message = error_of(error)
                    if code != 1050:
                        failed[name] = f"view {name}: {message} ({code})"
            if len(failed) == len(todo):
                self.left_out += failed.values()
                return
            todo = {name: todo[name] for name in failed}
