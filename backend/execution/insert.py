"""INSERT and REPLACE: rows made from expressions, numbered, checked and written in order.

A plain INSERT reads nothing: it expects its keys to be absent and learns at the commit if
they are not (`execution.assume_absent`); then the statement runs again with its eyes open
and finds out which row was the duplicate. The numbers it was given stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.execution.columns import Assignments, Columns, Scalar, scalar_of
from backend.execution.duplicates import duplicate_entry
from backend.execution.execution import Execution
from backend.execution.numbers import AutoIncrement, Numbers
from backend.execution.outcome import Done
from backend.execution.select import CompiledSelect
from backend.execution.writing import Duplicate, RowWriter
from controller.sql.plan import Insert, OnDuplicate
from dataflow.errors import Condition, InvalidStatement, Retryable
from dataflow.expression import Expression, columns_of
from dataflow.types import INTEGER_BYTES, NULL, Row, SqlType, Value

Cell = tuple[int, Scalar | None, SqlType]
"""(column position, its expression or None for DEFAULT, the expression's type)"""

Vectors = Sequence[tuple[Value, ...]]


class CompiledInsert:
    def __init__(self, insert: Insert) -> None:
        self.insert = insert
        self.table = insert.table
        self.columns = Columns(insert.table)
        self.ignore = insert.ignore or insert.on_duplicate is OnDuplicate.IGNORE
        self.select = None if insert.select is None else CompiledSelect(insert.select)
        self.on_update = Assignments(self.columns, insert.on_update)
        self.rows: tuple[tuple[Cell, ...], ...] = tuple(
            tuple(map(_cell, insert.columns, expressions)) for expressions in insert.rows
        )
        self.reads_row = any(
            columns_of(expression) for row in insert.rows for expression in row if expression is not None
        ) or any(column.default_expression is not None for column in insert.table.columns)
        targets = set(insert.columns)
        self.defaulted = tuple(
            position
            for position in range(len(insert.table.columns))
            if position not in targets and position != self.columns.row_id and position not in self.columns.generated
        )

    @property
    def may_assume_absent(self) -> bool:
        return self.insert.on_duplicate is OnDuplicate.ERROR and not self.ignore

    def numbering(self, numbers: Numbers, vectors: Vectors) -> AutoIncrement:
        """The AUTO_INCREMENT values of one statement, however often it has to be run."""
        return AutoIncrement(numbers, self.table, len(self.rows) * len(vectors))

    async def run(self, execution: Execution, vectors: Vectors, numbering: AutoIncrement) -> Done:
        """Insert each of the rows once for each of the parameter vectors."""
        if self.ignore:
            execution.modes = execution.modes.ignoring()
        numbering.restart()
        run = _Run(self, execution, numbering)
        if self.select is None:
            await run.insert([(cells, vector) for vector in vectors for cells in self.rows])
        else:
            selected = await self.select.run(execution)
            cells = tuple(
                (position, _reader(number), column.type)
                for number, (position, column) in enumerate(zip(self.insert.columns, selected.columns))
            )
            await run.insert([(cells, row) for row in selected.rows])
        if numbering.largest_explicit:
            await execution.numbers.raise_above(self.table, numbering.largest_explicit)
        return run.done()


def _cell(position: int, expression: Expression | None) -> Cell:
    if expression is None:
        return position, None, NULL
    return position, scalar_of(expression), expression.type


def _reader(number: int) -> Scalar:
    return lambda row, parameters: parameters[number]


class _Run:
    """One run of the statement: rows, counts, and what LAST_INSERT_ID() becomes."""

    def __init__(self, compiled: CompiledInsert, execution: Execution, numbering: AutoIncrement) -> None:
        self.compiled = compiled
        self.columns = compiled.columns
        self.execution = execution
        self.numbering = numbering
        self.affected = 0
        self.matched = 0
        self.duplicates = 0
        self.row_count = 0
        self.generated_id: int | None = None
        self.explicit_id = 0

    async def insert(self, sources: list[tuple[tuple[Cell, ...], Sequence[Value]]]) -> None:
        """Make a row of each (cells, parameters) and write them."""
        built: list[tuple[Row, bool, Sequence[Value]]] = []
        failure: InvalidStatement | None = None
        single = len(sources) == 1 and self.compiled.select is None
        for number, (cells, parameters) in enumerate(sources, 1):
            self.execution.report.row_number = number
            try:
                made = await self._build(cells, parameters, single)
            except InvalidStatement as error:
                failure = error  # reported unless a row before it has a duplicate key
                break
            if made is not None:
                built.append((*made, parameters))
        self.row_count = len(sources)
        assume_absent = self.execution.assume_absent and failure is None
        writer = RowWriter(self.execution.transaction, self.compiled.table, assume_absent)
        await writer.prefetch_inserts([row for row, _, _ in built])
        for row, generated, parameters in built:
            await self._write(writer, row, generated, parameters)
        if failure is not None:
            raise failure

    async def _build(
        self, cells: tuple[Cell, ...], parameters: Sequence[Value], single: bool
    ) -> tuple[Row, bool] | None:
        """A row to be stored, and whether it was given an AUTO_INCREMENT value."""
        columns, execution = self.columns, self.execution
        targets, auto = columns.targets, columns.auto_increment
        row: list[Value] = [None] * len(targets)
        if self.compiled.reads_row:
            row = [target.column.default for target in targets]
        for position in self.compiled.defaulted:
            if position != auto:
                row[position] = targets[position].default(execution, tuple(row))
        for position, scalar, source in cells:
            target = targets[position]
            if scalar is None:
                if position != auto:
                    row[position] = target.default(execution, tuple(row))
                continue
            value = scalar(tuple(row) if self.compiled.reads_row else (), parameters)
            value = target.store(value, source, execution)
            if value is None and not target.column.nullable and position != auto:
                value = target.replace_null(execution, always_error=single and not self.compiled.ignore)
            row[position] = value
        generated = False
        if auto is not None:
            generated = await self._number(row, auto)
        if columns.row_id is not None:
            row[columns.row_id] = (await execution.numbers.row_ids(self.compiled.table.id, 1))[0]
        finished = columns.complete(row, execution)
        violated = columns.violated(finished)
        if violated is None:
            return finished, generated
        if not self.compiled.ignore:
            raise InvalidStatement(Condition.CHECK_VIOLATED, violated)
        execution.warn(Condition.CHECK_VIOLATED, violated)
        return None

    async def _number(self, row: list[Value], position: int) -> bool:
        value = row[position]
        if value is None or (value == 0 and not self.execution.modes.no_auto_value_on_zero):
            number = await self.numbering.next()
            row[position] = number
            column = self.columns.table.columns[position]
            width = INTEGER_BYTES.get(column.type.kind)
            if width is not None and number >= 1 << (8 * width - (0 if column.type.unsigned else 1)):
                raise InvalidStatement(Condition.AUTO_INCREMENT_EXHAUSTED)
            return True
        if isinstance(value, int) and value > 0:
            self.numbering.note_explicit(value)
        return False

    async def _write(self, writer: RowWriter, row: Row, generated: bool, parameters: Sequence[Value]) -> None:
        deleted = 0
        while (duplicate := await writer.insert(row)) is not None:
            match self.compiled.insert.on_duplicate:
                case OnDuplicate.REPLACE:
                    found = await writer.read_row(duplicate.row_key)
                    if found is None:
                        raise Retryable(Condition.DEADLOCK)
                    writer.delete(found, writer.decode(found))
                    deleted += 1
                case OnDuplicate.UPDATE:
                    await self._update(writer, row, duplicate, parameters)
                    return
                case _:
                    error = duplicate_entry(self.compiled.table, duplicate.index, row)
                    if not self.compiled.ignore:
                        raise error
                    self.duplicates += 1
                    self.execution.warn(Condition.DUPLICATE_ENTRY, *error.arguments)
                    return
        self.affected += 1 + deleted
        self.matched += 1 + deleted
        self.duplicates += bool(deleted)
        auto = self.columns.auto_increment
        if auto is None:
            return
        number = row[auto]
        assert isinstance(number, int)
        if generated and self.generated_id is None:
            self.generated_id = number
        self.explicit_id = number

    async def _update(
        self, writer: RowWriter, row: Row, duplicate: Duplicate, parameters: Sequence[Value]
    ) -> None:
        found = await writer.read_row(duplicate.row_key)
        if found is None:
            raise Retryable(Condition.DEADLOCK)
        self.duplicates += 1
        old = writer.decode(found)
        if self.compiled.select is None:
            self.execution.parameters = tuple(parameters)  # a batch has a vector for each row
        new = self.compiled.on_update.apply(old, row, self.execution)
        self.matched += 1
        if new is old:
            return
        violated = self.columns.violated(new)
        if violated is not None:
            raise InvalidStatement(Condition.CHECK_VIOLATED, violated)
        second = await writer.update(found, old, new)
        if second is not None:
            error = duplicate_entry(self.compiled.table, second.index, new)
            if not self.compiled.ignore:
                raise error
            self.execution.warn(Condition.DUPLICATE_ENTRY, *error.arguments)
            return
        self.affected += 2

    def done(self) -> Done:
        execution = self.execution
        info = ""
        if self.row_count > 1 or self.compiled.select is not None:
            info = f"Records: {self.row_count}  Duplicates: {self.duplicates}  Warnings: {execution.warning_count}"
        last = self.explicit_id if self.generated_id is None else self.generated_id
        return Done(self.affected, self.matched, last, self.generated_id, info, execution.warnings())
