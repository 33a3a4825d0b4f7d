"""UPDATE and DELETE over one table: find, change in order, check keys as MySQL does, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from backend.execution.answering.result import count_of
from backend.execution.evaluation.reading import Found, row_address
from backend.execution.evaluation.scan import TableScan
from backend.execution.execution import Execution
from backend.execution.outcome import Done
from backend.execution.pace import breathe, parts
from backend.execution.rows import Rows, held_shared
from backend.execution.writes.columns import Assignments, WrittenColumns
from backend.execution.writes.duplicates import duplicate_entry
from backend.execution.writes.enforcement import Change, Enforcement, is_violation
from backend.execution.writes.numbers import whole
from backend.execution.writes.references import References
from backend.execution.writes.writing import Duplicate, RowWriter
from controller.sql.locking import EXCLUSIVE
from controller.sql.plan import Delete, Update
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Expression
from dataflow.plan.node import Order
from dataflow.schema import Table
from dataflow.values.types import Row

Victim = tuple[Found, Row, Row]
"""A row to change, and what else its new values are made of."""


class Victims:
    """The rows that an UPDATE or DELETE is about, in its order."""

    def __init__(
        self, table: Table, where: Expression | None, order_by: Sequence[Order], limit: Expression | None
    ) -> None:
        self._scan = TableScan(table, where, order_by)
        self._limit = None if limit is None else compile_scalar(limit)

    async def find(self, execution: Execution) -> list[Victim]:
        return held_shared([(found, row, ()) for found, row in part] for part in parts(await self._find(execution)))

    async def _find(self, execution: Execution) -> list[tuple[Found, Row]]:
        limit = None if self._limit is None else count_of(self._limit((), execution.parameters))
        rows: Rows[tuple[Found, Row]] = Rows()
        found: list[tuple[Found, Row]] = rows
        if limit == 0:
            return found
        transaction = execution.transaction
        by_key = self._scan.path.is_complete and self._scan.path.index is self._scan.table.primary_key
        locking = EXCLUSIVE if transaction.locking or by_key else None
        source = self._scan.rows(execution, locking)
        async for chunk in source:
            rows.add(chunk)
            if limit is not None and self._scan.sorter is None and len(found) >= limit:
                break
        await source.aclose()
        if self._scan.sorter is not None:
            self._scan.sorter.sort_by(found, itemgetter(1), execution.parameters)
        if limit is not None:
            found = found[:limit]
        if transaction.locking:
            store = transaction.store
            seen = [(row_address(store, key), version) for part in parts(found) for (key, version, _), _ in part]
            await transaction.lock_found(seen, EXCLUSIVE)
        return found


class CompiledUpdate:
    def __init__(self, update: Update) -> None:
        self._table = update.table
        self.ignore = update.ignore
        self._victims = Victims(update.table, update.where, update.order_by, update.limit)
        self._references = References(update.relations) if update.relations else None
        self._columns = WrittenColumns(update.table)
        self._assignments = Assignments(self._columns, update.assignments)

    async def run(self, execution: Execution, given: list[Victim] | None = None) -> Done:
        """Change the rows that WHERE finds, or those `given`."""
        if self.ignore:
            execution.modes = execution.modes.ignoring()
        victims = await self._victims.find(execution) if given is None else given
        changes: Rows[tuple[Found, Row, Row]] = Rows()
        failure: InvalidStatement | None = None
        for row_number, (found, old, extra) in enumerate(victims, 1):
            breathe()
            execution.report.row_number = row_number
            try:
                new = self._assignments.apply(old, extra, execution)
                if new is not old and self._passes(new, execution):
                    changes.add_made((found, old, new), new, old)
            except InvalidStatement as error:
                failure = error  # reported unless a row before it has a duplicate key
                break
        writer = RowWriter(execution.transaction, self._table)
        await writer.prefetch_updates(changes)
        enforcement = None if self._references is None else Enforcement(self._references, execution)
        if enforcement is not None:
            await enforcement.prefetch_parents(self._table, [new for part in parts(changes) for _, _, new in part])
        changed = 0
        auto, largest = self._columns.auto_increment, 0
        try:
            for found, old, new in changes:
                breathe()
                if enforcement is None:
                    duplicate = await writer.update(found, old, new)
                else:
                    duplicate, written = await self._enforce(enforcement, writer, (found, old, new), execution)
                    if not written:
                        continue
                if duplicate is None:
                    changed += 1
                    if auto is not None and new[auto] != old[auto]:
                        largest = max(largest, whole(new[auto]))
                elif self.ignore:
                    ignored = duplicate_entry(self._table, duplicate.index, new)
                    execution.warn(Condition.DUPLICATE_ENTRY, *ignored.arguments)
                else:
                    raise duplicate_entry(self._table, duplicate.index, new)
        finally:  # also of a statement that fails later, as InnoDB does
            if largest:
                await execution.numbers.raise_above(self._table, largest)
        if failure is not None:
            raise failure
        info = f"Rows matched: {len(victims)}  Changed: {changed}  Warnings: {execution.warning_count}"
        return Done(changed, len(victims), info=info, warnings=execution.warnings())

    async def _enforce(
        self, enforcement: Enforcement, writer: RowWriter, change: Change, execution: Execution
    ) -> tuple[Duplicate | None, bool]:
        """Write one row if its foreign keys allow it; with IGNORE, (None, False) if they do not."""
        found, old, new = change
        mark = execution.transaction.mark()
        try:
            await enforcement.changes(self._table, old, new)
            duplicate = await writer.update(found, old, new)
            if duplicate is None:
                await enforcement.added(self._table, new, old)
            else:
                execution.transaction.rollback_to_mark(mark)
        except InvalidStatement as error:
            if not self.ignore or not is_violation(error):
                raise
            execution.transaction.rollback_to_mark(mark)
            execution.warn(error.condition, *error.arguments)
            return None, False
        return duplicate, True

    def _passes(self, row: Row, execution: Execution) -> bool:
        violated = self._columns.violated(row)
        if violated is None:
            return True
        if not self.ignore:
            raise InvalidStatement(*violated)
        execution.warn(*violated)
        return False


class CompiledDelete:
    def __init__(self, delete: Delete) -> None:
        self._table = delete.table
        self.ignore = delete.ignore
        self._references = References(delete.relations) if delete.relations else None
        self._victims = Victims(delete.table, delete.where, delete.order_by, delete.limit)

    async def run(self, execution: Execution, given: list[Victim] | None = None) -> Done:
        victims = await self._victims.find(execution) if given is None else given
        if self._references is not None and self.ignore:
            return await self._delete_what_may_go(victims, execution)
        if self._references is not None:
            rows = [(found, row) for part in parts(victims) for found, row, _ in part]
            await Enforcement(self._references, execution).delete(self._table, rows)
        else:
            writer = RowWriter(execution.transaction, self._table)
            for found, row, _ in victims:
                writer.delete(found, row)
                breathe()
        return Done(len(victims), len(victims), warnings=execution.warnings())

    async def _delete_what_may_go(self, victims: list[Victim], execution: Execution) -> Done:
        """One row after the other; one that others point at stays."""
        assert self._references is not None
        deleted = 0
        for found, row, _ in victims:
            mark = execution.transaction.mark()
            try:
                await Enforcement(self._references, execution).delete(self._table, [(found, row)])
                deleted += 1
            except InvalidStatement as error:
                if not is_violation(error):
                    raise
                execution.transaction.rollback_to_mark(mark)
                execution.warn(error.condition, *error.arguments)
        return Done(deleted, deleted, warnings=execution.warnings())
