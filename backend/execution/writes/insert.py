"""INSERT and REPLACE: rows made from expressions, numbered, checked and written in order.

A plain INSERT reads nothing: it expects its keys to be absent and learns at the commit if
they are not (`execution.assume_absent`); then the statement runs again with its eyes open
and finds out which row was the duplicate. The numbers it was given stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.execution.answering.query import compile_read
from backend.execution.execution import Execution
from backend.execution.outcome import Done
from backend.execution.pace import breathe, parts
from backend.execution.rows import Rows
from backend.execution.transaction import RowsChanged
from backend.execution.writes.bulk_insert import bulk_insert
from backend.execution.writes.columns import Assignments, Scalar, WrittenColumns, divides, scalar_of
from backend.execution.writes.duplicates import duplicate_entry
from backend.execution.writes.enforcement import Enforcement, is_violation
from backend.execution.writes.numbers import AutoIncrement, whole
from backend.execution.writes.references import References
from backend.execution.writes.writing import Duplicate, RowWriter
from controller.sql.definitions.column_values import implicit_default
from controller.sql.plan import Insert, OnDuplicate
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression, columns_of
from dataflow.values.types import INTEGER_BYTES, NULL, Row, SqlType, Value
from persistence.counters import NUMBER_MAX

Cell = tuple[int, Scalar | None, SqlType]
"""(column position, its expression or None for DEFAULT, the expression's type)"""

Vectors = Sequence[tuple[Value, ...]]


class CompiledInsert:
    def __init__(self, insert: Insert) -> None:
        self.insert = insert
        self.table = insert.table
        self.columns = WrittenColumns(insert.table)
        self.references = References(insert.relations) if insert.relations else None
        self.ignore = insert.ignore or insert.on_duplicate is OnDuplicate.IGNORE
        self.select = self._strict_select = None if insert.select is None else compile_read(insert.select)
        if insert.select is not None and any(divides(each) for each in insert.select.outputs):
            self._strict_select = compile_read(insert.select, True)
        self._before = None if insert.before is None else compile_read(insert.before)
        self.on_update = Assignments(self.columns, insert.on_update)
        self.rows = self._strict_rows = _cells(insert, False)
        if any(expression is not None and divides(expression) for row in insert.rows for expression in row):
            self._strict_rows = _cells(insert, True)
        self.reads_row = any(
            columns_of(expression) for row in insert.rows for expression in row if expression is not None
        ) or any(column.default_expression is not None for column in insert.table.columns)
        self.last_unique = [insert.table.primary_key, *(index for index in insert.table.indexes if index.unique)][-1]
        self.initial = [
            column.default if column.nullable or column.has_default else implicit_default(column.type)
            for column in insert.table.columns
        ]
        """What an expression reads in a column that has no value yet."""
        targets = set(insert.columns)
        self.defaulted = tuple(
            position
            for position in range(len(insert.table.columns))
            if position not in targets and position != self.columns.row_id and position not in self.columns.generated
        )

        self.bulk = bulk_insert(insert, self.columns, self.defaulted)

    def values(
        self, execution: Execution, parameters: Sequence[Value], cells: tuple[Cell, ...] | None = None, found: Row = (), single: bool = True
    ) -> list[Value]:
        """A row as it will be stored, without its AUTO_INCREMENT value (nothing is computed from that).

        Without `cells` it is the statement's only one; `found` follows the row that expressions read.
        """
        if cells is None:
            [cells] = self._strict_rows if execution.modes.refuses_division_by_zero else self.rows
        targets, auto, reads_row = self.columns.targets, self.columns.auto_increment, self.reads_row
        row: list[Value] = list(self.initial) if reads_row else [None] * len(targets)
        computed: list[int] = []  # defaults that may read what the other columns get
        given = [position for position, scalar, _ in cells if scalar is None]
        for position in (*self.defaulted, *given):
            if targets[position].column.default_expression is not None:
                computed.append(position)
            elif position != auto:
                row[position] = targets[position].default(execution, tuple(row), named=position in given)
        for position, scalar, source in cells:
            target = targets[position]
            if scalar is None:
                continue
            value = target.store(scalar((*row, *found) if reads_row else (), parameters), source, execution)
            if value is None and not target.column.nullable and position != auto:
                value = target.replace_null(execution, always_error=single and not self.ignore)
            row[position] = value
        for position in sorted(computed):
            row[position] = targets[position].default(execution, tuple(row))
        return list(self.columns.complete(row, execution))

    @property
    def may_assume_absent(self) -> bool:
        return self.insert.on_duplicate is OnDuplicate.ERROR and not self.ignore

    def row_count(self, vectors: Vectors) -> int:
        """How many rows there are with so many parameter vectors; 0 if that depends on what is selected."""
        return len(self.rows) * len(vectors)

    async def run(self, execution: Execution, vectors: Vectors, numbering: AutoIncrement) -> Done:
        """Insert each of the rows once for each of the parameter vectors."""
        if self.ignore:
            execution.modes = execution.modes.ignoring()
        numbering.restart()
        found = () if self._before is None else (await self._before.run(execution)).rows[0]
        run = _Run(self, execution, numbering, found)
        if self.select is None:
            rows = self._strict_rows if execution.modes.refuses_division_by_zero else self.rows
            await run.insert([(cells, vector) for part in parts(vectors) for vector in part for cells in rows])
        else:
            select = self._strict_select if execution.modes.refuses_division_by_zero else self.select
            assert select is not None
            selected = await select.run(execution)
            cells = tuple(
                (position, _reader(number), column.type)
                for number, (position, column) in enumerate(zip(self.insert.columns, selected.columns))
            )
            await run.insert([(cells, row) for part in parts(selected.rows) for row in part])
        return run.done()


def _cells(insert: Insert, division_errors: bool) -> tuple[tuple[Cell, ...], ...]:
    def cell(position: int, expression: Expression | None) -> Cell:
        if expression is None:
            return position, None, NULL
        return position, scalar_of(expression, division_errors), expression.type

    return tuple(tuple(map(cell, insert.columns, expressions)) for expressions in insert.rows)


def _reader(number: int) -> Scalar:
    return lambda row, parameters: parameters[number]


@dataclass(slots=True)
class _Draft:
    """A row on its way; `is_numbered` if its AUTO_INCREMENT value is still to be generated."""

    row: list[Value]
    is_numbered: bool
    parameters: Sequence[Value]


class _Run:
    """One run of the statement: rows, counts, and what LAST_INSERT_ID() becomes."""

    def __init__(self, compiled: CompiledInsert, execution: Execution, numbering: AutoIncrement, found: Row) -> None:
        self.compiled = compiled
        self.found = found
        self.columns = compiled.columns
        self.execution = execution
        self.numbering = numbering
        self.enforcement = None if compiled.references is None else Enforcement(compiled.references, execution)
        self.affected = 0
        self.matched = 0
        self.duplicates = 0
        self.row_count = 0
        self.generated_id: int | None = None
        self.last_id = 0
        self.largest_written = 0

    async def insert(self, sources: list[tuple[tuple[Cell, ...], Sequence[Value]]]) -> None:
        """Make a row of each (cells, parameters) and write them, one after the other."""
        self.row_count = len(sources)
        drafts, failure = await self._drafts(sources)
        auto = self.columns.auto_increment
        explicit = [draft.row[auto] for part in parts(drafts) for draft in part if auto is not None and not draft.is_numbered]
        largest = max((value for part in parts(explicit) for value in part if isinstance(value, int)), default=0)
        known = self.execution.numbers.is_above(self.compiled.table, largest)
        assume_absent = self.execution.assume_absent and failure is None and known
        writer = RowWriter(self.execution.transaction, self.compiled.table, assume_absent)
        if self.enforcement is not None:
            self.enforcement.assume_present = assume_absent
            rows = [tuple(draft.row) for part in parts(drafts) for draft in part]
            await self.enforcement.prefetch_parents(self.compiled.table, rows)
        first_numbered = 0
        for draft in drafts:
            if draft.is_numbered:
                break
            first_numbered += 1
            breathe()
        await self._prefetch(writer, drafts[:first_numbered])
        try:
            for position, draft in enumerate(drafts):
                breathe()
                self.execution.report.row_number = position + 1
                before = self.numbering.position
                if draft.is_numbered and self.numbering.is_used_up:
                    await self.numbering.reserve()
                    await self._prefetch(writer, drafts[position:])
                await self._insert_draft(writer, draft, before)
        finally:  # also of a statement that fails later, as InnoDB does
            if self.largest_written:
                await self.execution.numbers.raise_above(self.compiled.table, self.largest_written)
        if failure is not None:
            raise failure

    async def _drafts(
        self, sources: list[tuple[tuple[Cell, ...], Sequence[Value]]]
    ) -> tuple[list[_Draft], InvalidStatement | None]:
        """The rows up to one whose values are refused, and the error for that."""
        drafts: Rows[_Draft] = Rows()
        columns = self.columns
        single = len(sources) == 1 and self.compiled.select is None
        row_ids: range | None = None
        if columns.row_id is not None:
            row_ids = await self.execution.numbers.row_ids(self.compiled.table.id, len(sources))
        for number, (cells, parameters) in enumerate(sources):
            breathe()
            self.execution.report.row_number = number + 1
            try:
                row = self.compiled.values(self.execution, parameters, cells, self.found, single)
                if not self._fulfils_checks(row):
                    continue
            except InvalidStatement as error:
                return drafts, error  # reported unless a row before it has a duplicate key
            if columns.row_id is not None and row_ids is not None:
                row[columns.row_id] = row_ids[number]
            is_numbered = False
            if columns.auto_increment is not None:
                value = row[columns.auto_increment]
                is_numbered = value is None or (value == 0 and not self.execution.modes.no_auto_value_on_zero)
            drafts.add_made(_Draft(row, is_numbered, parameters), row, parameters if self.compiled.select is not None else ())
        return drafts, None

    def _fulfils_checks(self, row: list[Value]) -> bool:
        return self._passes(self.columns.violated(tuple(row), numbered=False))

    def _passes(self, violated: tuple[Condition, *tuple[str, ...]] | None) -> bool:
        if violated is None:
            return True
        if not self.compiled.ignore:
            raise InvalidStatement(*violated)
        self.execution.warn(*violated)
        return False

    async def _prefetch(self, writer: RowWriter, drafts: Sequence[_Draft]) -> None:
        """Read what the drafts may collide with, with the numbers they are going to get."""
        if writer.assume_absent or not drafts:
            return
        number, auto = self.numbering.position, self.columns.auto_increment
        rows = []
        for draft in drafts:
            breathe()
            row = list(draft.row)
            if draft.is_numbered and auto is not None:
                row[auto] = number
                number += self.numbering.step
            rows.append(tuple(row))
        await writer.prefetch_inserts(rows)

    async def _insert_draft(self, writer: RowWriter, draft: _Draft, before: int) -> None:
        row, auto = draft.row, self.columns.auto_increment
        if auto is not None:
            value = row[auto]
            if draft.is_numbered:
                row[auto] = self._number(auto)
            else:
                self.numbering.note_explicit(whole(value))
            if self.columns.divides_by_number and not self._passes(self.columns.without_partition(tuple(row))):
                return
        is_inserted = await self._write(writer, tuple(row), draft)
        if auto is None:
            return
        number = whole(row[auto])
        if not is_inserted:  # the next row gets the number that this one did not need
            self.numbering.position = before or (number if draft.is_numbered else 0)
            return
        self.largest_written = max(self.largest_written, number)
        if draft.is_numbered and self.generated_id is None:
            self.generated_id = number

    def _number(self, position: int) -> int | float:
        number = self.numbering.take()
        type_ = self.columns.table.columns[position].type
        width = INTEGER_BYTES.get(type_.kind)
        end = NUMBER_MAX if width is None else 1 << (8 * width - (0 if type_.unsigned else 1))
        if number >= min(end, NUMBER_MAX):
            raise InvalidStatement(Condition.AUTO_INCREMENT_EXHAUSTED)
        return number if width is not None else float(number)

    async def _write(self, writer: RowWriter, row: Row, draft: _Draft) -> bool:
        """Write the row, or do what is to be done about a duplicate; False if no row was added."""
        self._note_id(row)
        deleted = 0
        mark = self.execution.transaction.mark()
        while (duplicate := await writer.insert(row)) is not None:
            match self.compiled.insert.on_duplicate:
                case OnDuplicate.REPLACE:
                    found = await writer.read_row(duplicate.row_key)
                    if found is None:
                        raise RowsChanged
                    old = writer.decode(found)
                    if self._may_stay and duplicate.index is self.compiled.last_unique and self._is_same(old, row):
                        break  # MySQL updates a row in place if no later key can clash: nothing changes
                    if self.enforcement is None:
                        writer.delete(found, old)
                    else:
                        await self.enforcement.delete(self.compiled.table, [(found, old)])
                    deleted += 1
                case OnDuplicate.UPDATE:
                    await self._update(writer, row, duplicate, draft)
                    return False
                case _:
                    error = duplicate_entry(self.compiled.table, duplicate.index, row)
                    if not self.compiled.ignore:
                        raise error
                    self.duplicates += 1
                    self.execution.warn(Condition.DUPLICATE_ENTRY, *error.arguments)
                    return False
        if self.enforcement is not None and not await self._has_parents(row, mark):
            return False
        self.affected += 1 + deleted
        self.matched += 1 + deleted
        self.duplicates += bool(deleted)
        return True

    async def _has_parents(self, row: Row, mark: int) -> bool:
        """Whether the row written since `mark` may stay; with IGNORE it is taken back if it may not."""
        assert self.enforcement is not None
        try:
            await self.enforcement.added(self.compiled.table, row)
        except InvalidStatement as error:
            if not self.compiled.ignore or not is_violation(error):
                raise
            self.execution.transaction.rollback_to_mark(mark)
            self.execution.warn(error.condition, *error.arguments)
            return False
        return True

    def _note_id(self, row: Row) -> None:
        if self.columns.auto_increment is not None:
            self.last_id = whole(row[self.columns.auto_increment])

    @property
    def _may_stay(self) -> bool:
        """REPLACE deletes a row that others may point at, even if the new one is the same."""
        references = self.compiled.references
        return references is None or not references.to(self.compiled.table)

    def _is_same(self, old: Row, new: Row) -> bool:
        hidden = self.columns.row_id
        return old == new or (hidden is not None and old[:hidden] == new[:hidden])

    async def _update(self, writer: RowWriter, row: Row, duplicate: Duplicate, draft: _Draft) -> None:
        found = await writer.read_row(duplicate.row_key)
        if found is None:
            raise RowsChanged
        self.duplicates += 1
        old = writer.decode(found)
        if self.compiled.select is None:
            self.execution.parameters = tuple(draft.parameters)  # a batch has a vector for each row
        more = () if self.compiled.select is None else tuple(draft.parameters[len(self.compiled.insert.columns) :])
        new = self.compiled.on_update.apply(old, (*row, *self.found, *more), self.execution)
        self._note_id(new)
        if new is old:
            self.matched += 1  # CLIENT_FOUND_ROWS counts it, though nothing changes
            return
        violated = self.columns.violated(new)
        if violated is not None:
            raise InvalidStatement(*violated)
        if self.enforcement is not None:
            await self.enforcement.changes(self.compiled.table, old, new)
        second = await writer.update(found, old, new)
        if second is None:
            if self.enforcement is not None:
                await self.enforcement.added(self.compiled.table, new, old)
            self.affected += 2
            self.matched += 2
            if new[self.columns.auto_increment or 0] != old[self.columns.auto_increment or 0]:
                self.largest_written = max(self.largest_written, self.last_id)
            return
        error = duplicate_entry(self.compiled.table, second.index, new)
        if not self.compiled.ignore:
            raise error
        self.execution.warn(Condition.DUPLICATE_ENTRY, *error.arguments)

    def done(self) -> Done:
        execution = self.execution
        info = ""
        if self.row_count > 1 or self.compiled.select is not None:
            info = f"Records: {self.row_count}  Duplicates: {self.duplicates}  Warnings: {execution.warning_count}"
        updates = self.compiled.select is not None and self.compiled.insert.on_duplicate is OnDuplicate.UPDATE  # MySQL says none then
        last = self.generated_id or (self.last_id if self.affected and not updates else 0)
        return Done(self.affected, self.matched, last, self.generated_id, info, execution.warnings())
