"""Values into columns: conversion, defaults, NOT NULL, generated columns, CHECK constraints.

What a row to be stored has gone through, for INSERT and UPDATE alike. Without strict mode, and
under IGNORE, most of what would be an error is a warning and the nearest value that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from backend.execution.execution import Execution
from controller.sql.plan import Assignment
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions import expression as expressions
from dataflow.expressions.compile import compile_predicate, compile_scalar
from dataflow.expressions.expression import Expression, Literal, Parameter, columns_of
from dataflow.functions import call
from dataflow.functions.clocks import unix_seconds
from dataflow.schema import ROW_ID_NAME, VIEW_CHECK, Table, TableColumn
from dataflow.values.modes import Modes
from dataflow.values.storing import Report, column_storer
from dataflow.values.temporal import date_part, from_utc, time_part
from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, Row, SqlType, Value

Scalar = Callable[[Row, Sequence[Value]], Value]
_DIVISIONS = frozenset({"/", "div", "%", "mod"})


def _no_storer(value: Value, report: Report) -> Value:
    raise AssertionError("nothing was stored yet")


class WrittenColumn:
    """One column of a table that is written to."""

    def __init__(self, column: TableColumn) -> None:
        self.column = column
        self._default = None if column.default_expression is None else compile_scalar(column.default_expression)
        self._storers: dict[tuple[SqlType, Modes], Callable[[Value, Report], Value]] = {}
        self._last: tuple[SqlType | None, Modes | None, Callable[[Value, Report], Value]] = (None, None, _no_storer)
        """The storer that was used last: for the rows of one statement it is the same."""

    def store(self, value: Value, source: SqlType, execution: Execution) -> Value:
        """The value as the column keeps it. NULL stays NULL, whatever the column says."""
        if value is None:
            return None
        last_source, last_modes, storer = self._last
        modes = execution.modes
        if last_source is not source or last_modes is not modes:
            storer = self._storer(source, modes)
            self._last = (source, modes, storer)
        return storer(value, execution.report)

    def _storer(self, source: SqlType, modes: Modes) -> Callable[[Value, Report], Value]:
        found = self._storers.get((source, modes))
        if found is None:
            found = self._storers[source, modes] = column_storer(self.column.type, source, self.column.name, modes)
        return found

    @property
    def has_plain_default(self) -> bool:
        """Whether `default` is the same for all rows of a statement, and no error."""
        column = self.column
        return column.default_now or (self._default is None and (column.has_default or column.nullable))

    def default(self, execution: Execution, row: Row, named: bool = True) -> Value:
        """What DEFAULT stands for; 1364 if the column has none. Unless it is `named` in the row, all rows together are warned of once."""
        column = self.column
        if column.default_now:
            return self.now(execution)
        if self._default is not None:
            assert column.default_expression is not None
            value = self._default(row, tuple(_moment(name, execution) for name in column.default_facts))
            return self.store(value, column.default_expression.type, execution)
        if column.has_default or column.nullable:
            return column.default
        if column.type.kind is Kind.ENUM or column.auto_increment:
            return implicit_default(column.type)
        if execution.modes.strict:
            raise InvalidStatement(Condition.NO_DEFAULT, column.name)
        (execution.warn if named else execution.warn_once)(Condition.NO_DEFAULT, column.name)
        return implicit_default(column.type)

    def now(self, execution: Execution) -> Value:
        """CURRENT_TIMESTAMP with the column's precision; a TIMESTAMP is kept in UTC."""
        type_ = self.column.type
        now = execution.now
        if type_.kind is not Kind.TIMESTAMP:
            now = from_utc(now, execution.modes.time_zone)
        return int(date_part(now)) if type_.kind is Kind.DATE else _cut(now, type_.scale)

    def replace_null(self, execution: Execution, always_error: bool) -> Value:
        """What becomes of a NULL in a NOT NULL column."""
        if execution.modes.strict or always_error:
            raise InvalidStatement(Condition.COLUMN_NOT_NULL, self.column.name)
        execution.warn(Condition.COLUMN_NOT_NULL, self.column.name)
        return implicit_default(self.column.type)


def _cut(moment: int, digits: int) -> int:
    unit: int = 10 ** (6 - digits)
    return moment - (moment & 0xFFFFFF) % unit


def _moment(fact: str, execution: Execution) -> Value:
    """now:N, sysdate:N, today, time:N, of the session's zone or of UTC; unix_timestamp."""
    name, _, digits = fact.partition(":")
    if name == "unix_timestamp":
        return unix_seconds(execution.now)
    now = execution.now if name.startswith("utc_") else from_utc(execution.now, execution.modes.time_zone)
    match name.removeprefix("utc_"):
        case "today":
            return int(date_part(now))
        case "time":
            return int(time_part(_cut(now, int(digits))))
        case _:
            return _cut(now, int(digits))


def implicit_default(type_: SqlType) -> Value:
    """What a NOT NULL column without a default gets where nothing else is allowed to happen."""
    kind = type_.kind
    if kind is Kind.ENUM:
        return type_.members[0]
    if kind is Kind.DECIMAL:
        return Decimal(0).scaleb(-type_.scale)
    if kind in REALS:
        return 0.0
    if kind is Kind.JSON:
        return "null"
    if kind in STRINGS:
        return ""
    if kind in BLOBS:
        return bytes(type_.length or 1) if kind is Kind.BINARY else b""
    return 0


@dataclass(frozen=True, slots=True)
class _Generated:
    position: int
    value: Scalar
    source: SqlType


class WrittenColumns:
    """All columns of a table, as INSERT and UPDATE write them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.targets = tuple(WrittenColumn(column) for column in table.columns)
        self.row_id = next((n for n, column in enumerate(table.columns) if column.name == ROW_ID_NAME), None)
        self.auto_increment = next((n for n, column in enumerate(table.columns) if column.auto_increment), None)
        self.on_update = tuple(n for n, column in enumerate(table.columns) if column.on_update_now)
        self._generated = tuple(
            _Generated(position, compile_scalar(column.generated), column.generated.type)
            for position, column in enumerate(table.columns)
            if column.generated is not None
        )
        self.generated = frozenset(each.position for each in self._generated)
        self._checks = tuple((check.name, compile_predicate(call("not", check.expression))) for check in table.checks if check.enforced)
        divided = table.partitioning
        self._partition: tuple[Scalar, Scalar] | None = None
        if divided is not None and divided.condition is not None and divided.value is not None:
            self._partition = compile_scalar(divided.condition), compile_scalar(divided.value)
        self.divides_by_number = (
            divided is not None and divided.condition is not None and self.auto_increment in columns_of(divided.condition)
        )
        """Whether only a row with its AUTO_INCREMENT number tells whether there is a partition for it."""

    @property
    def has_checks(self) -> bool:
        return bool(self._checks) or self._partition is not None

    def complete(self, row: list[Value], execution: Execution) -> Row:
        """Fill in the generated columns."""
        for each in self._generated:
            value = each.value(tuple(row), execution.parameters)
            row[each.position] = self.targets[each.position].store(value, each.source, execution)
        return tuple(row)

    def without_partition(self, row: Row) -> tuple[Condition, str] | None:
        """What to say of a row that has no partition."""
        if self._partition is None or self._partition[0](row, ()):
            return None
        value = self._partition[1](row, ())
        return Condition.NO_PARTITION_FOR_VALUE, "NULL" if value is None else str(value)

    def violated(self, row: Row, numbered: bool = True) -> tuple[Condition, *tuple[str, ...]] | None:
        """What to say of a CHECK constraint, or a view's CHECK OPTION, that the row does not fulfil, or of a row without a partition."""
        name = next((name for name, violates in self._checks if violates(row, ())), None)
        if name is None:
            return None if self.divides_by_number and not numbered else self.without_partition(row)
        if name.startswith(VIEW_CHECK):
            return Condition.VIEW_CHECK_FAILED, *name.removeprefix(VIEW_CHECK).split(".", 1)
        return Condition.CHECK_VIOLATED, name


def scalar_of(expression: Expression, division_errors: bool = False) -> Scalar:
    """As `compile_scalar`, without compiling what is just a value: most of what INSERT is given."""
    if isinstance(expression, Literal):
        value = expression.value
        return lambda row, parameters: value
    if isinstance(expression, Parameter):
        index = expression.index
        return lambda row, parameters: parameters[index]
    return compile_scalar(expression, division_errors)


def divides(expression: Expression) -> bool:
    """Whether it makes a difference to `scalar_of` if a division by zero is an error."""
    return any(isinstance(node, expressions.Call) and node.function in _DIVISIONS for node in expressions.walk(expression))


def _is_itself(assignment: Assignment) -> bool:
    """`c = c` is left alone, whatever the mode says about the value that is there."""
    expression = assignment.expression
    return isinstance(expression, expressions.Column) and expression.index == assignment.column


class Assignments:
    """SET of an UPDATE or of ON DUPLICATE KEY UPDATE: left to right, each sees the ones before."""

    def __init__(self, columns: WrittenColumns, assignments: Sequence[Assignment]) -> None:
        self._columns = columns

        def compiled(division_errors: bool) -> tuple[tuple[int, Scalar | None, Expression], ...]:
            return tuple(
                (each.column, None if each.is_default else scalar_of(each.expression, division_errors), each.expression)
                for each in assignments
                if not _is_itself(each)
            )

        self._assignments = self._strict_assignments = compiled(False)
        if any(divides(each.expression) for each in assignments):
            self._strict_assignments = compiled(True)
        assigned = {each.column for each in assignments}
        self._on_update = tuple(position for position in columns.on_update if position not in assigned)

    def apply(self, old: Row, extra: Row, execution: Execution) -> Row:
        """The new row; the same object if nothing changes. `extra` follows it in what is read."""
        targets = self._columns.targets
        row = list(old)
        is_strict = execution.modes.refuses_division_by_zero
        for position, scalar, expression in self._strict_assignments if is_strict else self._assignments:
            target = targets[position]
            if scalar is None:
                row[position] = target.default(execution, tuple(row))
                continue
            value = scalar((*row, *extra), execution.parameters)
            value = target.store(value, expression.type, execution)
            if value is None and not target.column.nullable:
                value = target.replace_null(execution, always_error=False)
            row[position] = value
        new = self._columns.complete(row, execution)
        if new == old:
            return old
        if self._on_update:
            row = list(new)
            for position in self._on_update:
                row[position] = targets[position].now(execution)
            new = self._columns.complete(row, execution)
        return new
