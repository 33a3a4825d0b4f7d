"""What PARTITION BY demands of a table, and which rows have a partition.

Constants are computed when they are given; expressions are bound to the columns' positions whenever these change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from controller.sql.definitions.partition_text import MAXVALUE
from controller.sql.definitions.stored_expressions import bind, columns_in, normalised
from controller.sql.expressions.scope import Scope
from controller.sql.expressions.translate import Translator
from controller.sql.parameters import Parameters
from controller.sql.settings import Settings
from controller.sql.text.lexer import TokenKind, quoted, tokens
from controller.sql.text.parse import parse_expression
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Column, Expression
from dataflow.functions import call
from dataflow.schema import Index, Partition, Partitioning, Table, has_row_id
from dataflow.values.conversion.texts import to_text
from dataflow.values.types import BLOBS, INTEGERS, TEMPORALS, TEXTS, Kind, SqlType, Value

_FORBIDDEN = frozenset({"/", "|", "&", "^", "<<", ">>", "~"})
_FUNCTIONS = frozenset(
    """ABS CEIL CEILING FLOOR MOD DATEDIFF DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR EXTRACT HOUR MICROSECOND MINUTE MONTH QUARTER SECOND
    TIME_TO_SEC TO_DAYS TO_SECONDS UNIX_TIMESTAMP WEEKDAY YEAR YEARWEEK DIV""".split()  # noqa: SIM905
)
"""What a partitioning function may call (24.6.3 of MySQL's manual)."""
_BY_KEY = BLOBS | TEXTS | TEMPORALS | {Kind.JSON, Kind.ENUM, Kind.SET, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE}
"""What an expression that is a column alone may not be of."""


def renamed_in_partitions(table: Table, names: dict[str, str], settings: Settings) -> Table:
    found = table.partitioning
    if found is None:
        return table
    columns, sub_columns = (tuple([names.get(each.lower(), each) for each in given]) for given in (found.columns, found.sub_columns))
    sql, sub_sql = (normalised(each, settings, names) if each else "" for each in (found.sql, found.sub_sql))
    return replace(table, partitioning=replace(found, columns=columns, sub_columns=sub_columns, sql=sql, sub_sql=sub_sql))


def bound_partitions(table: Table, settings: Settings) -> Table:
    """`table` with its partitioning checked and bound."""
    found = table.partitioning
    if found is None:
        return table
    if table.foreign_keys:
        raise InvalidStatement(Condition.FOREIGN_KEY_OF_PARTITIONED)
    table = renamed_in_partitions(table, {column.name.lower(): column.name for column in table.columns}, settings)
    found = table.partitioning
    assert found is not None
    used = _columns(found.method, found.sql, found.columns, table, settings)
    used |= _columns(found.sub_method, found.sub_sql, found.sub_columns, table, settings) if found.sub_method else set()
    _check_keys(table, used)
    unsigned = bool(found.sql) and bind(found.sql, table, settings, "partition function").type.unsigned
    partitions = tuple([_computed(each, found, settings, unsigned) for each in found.partitions])
    found = replace(found, partitions=partitions)
    if found.method == "RANGE":
        _check_ranges(partitions, settings)
    elif found.method == "LIST":
        members = [row for each in partitions for row in each.values]
        if len(set(members)) < len(members):
            raise InvalidStatement(Condition.REPEATED_PARTITION_CONSTANT)
    condition = condition_of(found, partitions)
    if condition == "TRUE":
        return replace(table, partitioning=replace(found, condition=None, value=None))
    bound = bind(condition, table, settings, "partition function")
    return replace(table, partitioning=replace(found, condition=bound, value=_named_value(found, table, settings)))


def _columns(method: str, sql: str, names: Sequence[str], table: Table, settings: Settings) -> set[str]:
    """The columns that divide the rows, in lower case."""
    known = {column.name.lower(): column for column in table.columns}
    if not sql:
        if any(name.lower() not in known for name in names):
            raise InvalidStatement(Condition.PARTITION_FIELD_MISSING)
        return {name.lower() for name in names}
    for token, following in pairwise([*tokens(sql), None]):
        called = token is not None and token.kind is TokenKind.WORD and following is not None and following.text == "("
        if token is not None and (token.text in _FORBIDDEN or (called and token.upper not in _FUNCTIONS)):
            raise InvalidStatement(Condition.PARTITION_FUNCTION_FORBIDDEN)
    expression = bind(sql, table, settings, "partition function")
    if isinstance(expression, Column) and expression.type.kind in _BY_KEY:
        raise InvalidStatement(Condition.PARTITION_FIELD_TYPE, table.columns[expression.index].name)
    if not columns_in(sql):
        raise InvalidStatement(Condition.CONSTANT_IN_PARTITION_FUNCTION)
    if expression.type.kind not in INTEGERS | {Kind.YEAR, Kind.BIT}:
        raise InvalidStatement(Condition.WRONG_PARTITION_FUNCTION_TYPE, "PARTITION")
    return columns_in(sql) & known.keys()


def _check_keys(table: Table, used: Iterable[str]) -> None:
    """Every unique key has all columns that divide the rows."""
    primary = () if has_row_id(table) else (table.primary_key,)
    for index in (*primary, *[each for each in table.indexes if each.unique]):
        if not _plain_columns(index, table) >= set(used):
            kind = "PRIMARY KEY" if index is table.primary_key else "UNIQUE INDEX"
            raise InvalidStatement(Condition.UNIQUE_WITHOUT_PARTITION_COLUMNS, kind)


def _plain_columns(index: Index, table: Table) -> set[str]:
    names = {column.id: column.name.lower() for column in table.columns}
    return {names[part.column_id] for part in index.parts if part.prefix is None}


def _constant(sql: str, settings: Settings) -> tuple[Value, SqlType]:
    parameters = Parameters(())
    expression = Translator(Scope(()), "partition function", parameters, settings).translate(parse_expression(sql))
    if parameters.facts:
        raise InvalidStatement(Condition.CONSTANT_IN_PARTITION_FUNCTION)
    return compile_scalar(expression)((), ()), expression.type


def _computed(partition: Partition, found: Partitioning, settings: Settings, unsigned: bool) -> Partition:
    width = max(1, len(found.columns))
    rows = []
    for row in partition.values:
        if len(row) != width and row != (MAXVALUE,):
            raise InvalidStatement(Condition.PARTITION_COLUMN_LISTS)
        rows.append(tuple([_literal(each, partition, found, settings, unsigned) for each in row]))
    return replace(partition, values=tuple(rows))


def _literal(sql: str, partition: Partition, found: Partitioning, settings: Settings, unsigned: bool) -> str:
    if sql == MAXVALUE:
        if found.method == "LIST":
            raise InvalidStatement(Condition.MAXVALUE_IN_LIST)
        return sql
    value, kind = _constant(sql, settings)
    if value is None:
        if found.method == "RANGE":
            raise InvalidStatement(Condition.NULL_IN_LESS_THAN)
        return "NULL"
    if not found.columns:
        if kind.kind not in INTEGERS or not isinstance(value, int):
            raise InvalidStatement(Condition.PARTITION_VALUE_NOT_INT, partition.name)
        if unsigned and value < 0:
            raise InvalidStatement(Condition.PARTITION_CONSTANT_DOMAIN)
        return str(value)
    if kind.kind in INTEGERS:
        return str(value)
    convert = to_text(kind)
    shown = str(value if convert is None else convert(value))
    return "'" + shown.replace("\\", "\\\\").replace("'", "''") + "'"


def _check_ranges(partitions: Sequence[Partition], settings: Settings) -> None:
    for before, after in pairwise([each.values[0] for each in partitions]):
        if before[0] == MAXVALUE:
            raise InvalidStatement(Condition.MAXVALUE_NOT_LAST)
        if not increases(before, after, settings):
            raise InvalidStatement(Condition.RANGE_NOT_INCREASING)


def increases(before: Sequence[str], after: Sequence[str], settings: Settings) -> bool:
    for one, other in zip(before, after):
        if one == other:
            continue
        if MAXVALUE in (one, other):
            return other == MAXVALUE
        return bool(_constant(f"({one}) < ({other})", settings)[0])
    return False


def condition_of(found: Partitioning, chosen: Sequence[Partition]) -> str:
    """What holds for the rows of these partitions, as SQL over the table's columns."""
    if found.method == "LIST":
        rows = [row for each in chosen for row in each.values]
        names = [quoted(each) for each in found.columns] or [f"({found.sql})"]
        return " OR ".join(["(" + " AND ".join([f"{name} <=> {value}" for name, value in zip(names, row)]) + ")" for row in rows])
    if found.method == "RANGE":
        ends = [each.values[0] for each in found.partitions]
        if list(chosen) == list(found.partitions):
            return _below(found, ends[-1])
        terms = []
        for each in chosen:
            number = found.partitions.index(each)
            start = f" AND NOT ({_below(found, ends[number - 1])})" if number else ""
            terms.append(f"(({_below(found, ends[number])}){start})")
        return " OR ".join(terms)
    if len(chosen) == len(found.partitions):
        return "TRUE"
    if found.method != "HASH":
        raise Unsupported(f"rows of one partition by {found.method}")
    numbers = ", ".join([str(found.partitions.index(each)) for each in chosen])
    return f"COALESCE(ABS(MOD({found.sql}, {found.count})), 0) IN ({numbers})"


def _below(found: Partitioning, end: Sequence[str]) -> str:
    """NULL is below everything."""
    if end[0] == MAXVALUE:
        return "TRUE"
    names = [quoted(each) for each in found.columns] or [f"({found.sql})"]
    below = f"({names[0]} IS NULL OR {names[0]} < {end[0]})"
    if len(end) == 1:
        return below
    rest = _below(replace(found, sql="", columns=found.columns[1:]), end[1:])
    return f"({below} OR ({names[0]} = {end[0]} AND {rest}))"


def _named_value(found: Partitioning, table: Table, settings: Settings) -> Expression:
    if found.columns:
        return call("if", *[bind(each, table, settings, "partition function") for each in ("TRUE", "'from column_list'", "NULL")])
    return bind(f"CONCAT({found.sql})", table, settings, "partition function")
