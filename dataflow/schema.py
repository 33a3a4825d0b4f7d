"""Base tables: columns, keys, and the formats that stored rows may have.

A `Table` is an immutable value with an id that is never used again and a `version` that
every change raises. Columns and indexes have ids of their own, unique within the table and
never reused, so a stored row or index entry always means what it meant when it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dataflow.expressions.expression import Expression
from dataflow.values.types import SqlType, Value


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column. At most one of `default`, `default_expression`, `auto_increment` is set.

    `default` is the stored value of DEFAULT; `has_default` tells DEFAULT NULL from none.
    `default_now` and `on_update_now` are CURRENT_TIMESTAMP with the column's precision. `default_facts` names what the parameters of
    `default_expression` are: moments, as in `controller.sql.expressions.facts`.
    `missing` is what rows stored before the column existed are read as.
    `generated` computes the column from the row (its `TableColumn` nodes are row positions).
    """

    id: int
    name: str
    type: SqlType
    nullable: bool = True
    has_default: bool = False
    default: Value = None
    default_now: bool = False
    default_expression: Expression | None = None
    on_update_now: bool = False
    auto_increment: bool = False
    generated: Expression | None = None
    generated_stored: bool = False
    generated_sql: str = ""
    default_sql: str = ""
    comment: str = ""
    invisible: bool = False
    missing: Value = None
    default_facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of an index, by id; `prefix` is the n of `col(n)`, in characters or bytes."""

    column_id: int
    prefix: int | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`building` indexes are written but not yet read. FULLTEXT and SPATIAL ones hold no entries."""

    id: int
    name: str
    parts: tuple[KeyPart, ...]
    unique: bool = False
    kind: str = "BTREE"
    comment: str = ""
    building: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`unchecked` while rows that were stored before it may still have no parent."""

    name: str
    columns: tuple[str, ...]
    parent_database: str
    parent_table: str
    parent_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """`values` are constants as SQL: of RANGE one for each column (or MAXVALUE), of LIST those of one member after the other."""

    name: str
    values: tuple[tuple[str, ...], ...] = ()
    comment: str = ""
    subpartitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How PARTITION BY divides a table. Rows are stored as in any table; what shows is which rows have a partition at all.

    `method` is RANGE, LIST, HASH, KEY, LINEAR HASH or LINEAR KEY; of `columns` (COLUMNS (…) and KEY (…)), else of the expression `sql`.
    `condition` holds for the rows that have a partition; None if all have. `value` is what error 1526 names.
    """

    method: str
    sql: str
    columns: tuple[str, ...] = ()
    partitions: tuple[Partition, ...] = ()
    count: int = 1
    sub_method: str = ""
    sub_sql: str = ""
    sub_columns: tuple[str, ...] = ()
    sub_count: int = 1
    condition: Expression | None = None
    value: Expression | None = None


VIEW_CHECK = "\0view "


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint; one whose name begins with `VIEW_CHECK` is of a view that the statement writes through."""

    name: str
    sql: str
    expression: Expression
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A base table.

    `primary_key` always exists: a table declared without one gets the hidden column
    `ROW_ID_NAME` (BIGINT UNSIGNED, numbered by the system, last in `columns`, invisible), as its
    last part: rows are in the order of the first key over integers, if there was one when they were stored.
    `formats[n]` lists the column ids, in order, of a row stored in format n; rows are
    written in the last format. While `altering`, it is read but not written.
    """

    id: int
    database: str
    name: str
    columns: tuple[TableColumn, ...]
    primary_key: Index
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    formats: tuple[tuple[int, ...], ...] = ()
    version: int = 1
    next_column_id: int = 1
    next_index_id: int = 1
    auto_increment_start: int = 1
    engine: str = "InnoDB"
    collation: str = "utf8mb4_0900_ai_ci"
    comment: str = ""
    options: tuple[tuple[str, str], ...] = field(default=())
    altering: bool = False
    partitioning: Partitioning | None = None


def layout_number(table: Table) -> int:
    """What the dataflow knows this version of the table by: where each column of a row is."""
    return table.id + (table.version << _ID_BITS)


def table_of_layout(number: int) -> int:
    """The id of the table whose layout, or id, that is."""
    return number & ((1 << _ID_BITS) - 1)


_ID_BITS = 32

ROW_ID_NAME = "millrace_row_id"
"""The hidden primary key of tables that declare none."""

FUNCTIONAL_NAME_PREFIX = "!hidden!"
"""Names of the columns behind expressions of indexes, as in MySQL."""


def has_row_id(table: Table) -> bool:
    """Whether nobody declared a primary key."""
    return any(column.name == ROW_ID_NAME for column in table.columns)


def declared_keys(table: Table) -> tuple[Index, ...]:
    """The keys that somebody declared, the primary key first."""
    return table.indexes if has_row_id(table) else (table.primary_key, *table.indexes)


def leads_with(index: Index, columns: Sequence[int | None]) -> bool:
    """Whether rows can be found in the index by these columns, given by their ids."""
    return index.kind == "BTREE" and [part.column_id for part in index.parts if part.prefix is None][: len(columns)] == columns


def is_clustered(table: Table, index: Index) -> bool:
    """Whether rows are in the order of the index, because the primary key begins with it: it needs no entries."""
    return not index.unique and index.parts == table.primary_key.parts[: len(index.parts)]


def is_internal(column: TableColumn) -> bool:
    """Whether nobody declared the column: it is shown nowhere."""
    return column.name == ROW_ID_NAME or is_functional(column)


def is_functional(column: TableColumn) -> bool:
    return column.name.startswith(FUNCTIONAL_NAME_PREFIX)
