"""Plans: statements with every name resolved, ready to execute.

Expressions read the row of the one table involved, at the positions of `Table.columns`
(hidden columns included). `parameters` of the statement come first in the parameter vector;
after them the session facts listed in `facts`, in order, e.g. ("now:0",) for NOW(); see
`controller.sql.expressions.facts` for their names and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from controller.catalog import CatalogView
from controller.sql.locking import Locking
from controller.sql.parameters import ColumnUse
from dataflow.expressions.expression import Expression
from dataflow.functions.json_table import JsonTable
from dataflow.plan.node import AggregateFunction, Node, Order
from dataflow.schema import Table
from dataflow.values.types import Row, SqlType, Value


class OnDuplicate(Enum):
    ERROR = "error"
    IGNORE = "ignore"
    REPLACE = "replace"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column` is the position in `Table.columns`; `is_default` stands for SET c = DEFAULT."""

    column: int
    expression: Expression
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A result column and where it comes from (empty strings for computed ones)."""

    name: str
    type: SqlType
    nullable: bool = True
    table: str = ""
    original_table: str = ""
    original_name: str = ""
    database: str = ""
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT/REPLACE … VALUES, SET or SELECT.

    `columns` are the target positions; each of `rows` has one expression per target, None
    for DEFAULT, evaluated with an empty row except that earlier targets of the same row may
    be read at their table position (MySQL lets `VALUES (1, a + 1)` do so). In `on_update`,
    the row is the existing row followed by the row that was to be inserted (VALUES(c)).
    `before` is a SELECT of one row that is evaluated once: its values follow the row that expressions read. In
    `on_update`, outputs of `select` beyond `columns` follow those.
    `relations` are the tables whose foreign keys are to be enforced, the table itself among
    them; none if there are no foreign keys, or they are not to be checked.
    `is_silent`: it writes through a view without the AUTO_INCREMENT column, so LAST_INSERT_ID() stays.
    """

    table: Table
    columns: tuple[int, ...]
    rows: tuple[tuple[Expression | None, ...], ...]
    on_duplicate: OnDuplicate
    on_update: tuple[Assignment, ...] = ()
    select: Query | None = None
    ignore: bool = False
    relations: tuple[Table, ...] = ()
    before: Query | None = None
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Assignments happen left to right and see the earlier ones, as in MySQL."""

    table: Table
    assignments: tuple[Assignment, ...]
    where: Expression | None
    order_by: tuple[Order, ...] = ()
    limit: Expression | None = None
    ignore: bool = False
    relations: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """With `ignore`, a row that others point at stays, with a warning."""

    table: Table
    where: Expression | None
    order_by: tuple[Order, ...] = ()
    limit: Expression | None = None
    relations: tuple[Table, ...] = ()
    ignore: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """The rows wanted have one of `values`, which read no row, in `column` of the node."""

    column: int
    values: tuple[Expression, ...]


Bound = int | Expression | None
"""Rows from the current one, 0 for it or its peers; the value that a RANGE reaches to, which reads the value of
ORDER BY as its only column; None for unbounded."""
Frame = tuple[str, Bound, Bound]
"""(rows or range, start, end)"""


@dataclass(frozen=True, slots=True)
class WindowFunction:

    function: AggregateFunction
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Any SELECT: rows of `node` looked up by `keys`, then filtered, ordered and cut.

    `filter`, `outputs` and `order_by` read the node's row, followed by the values of `windows`.
    `default` is the row to use if there is none (an aggregate without GROUP BY). `prior` are
    queries to be run first; each one's rows are those of a table with that id. A `shareable`
    node depends on the base tables alone, not on parameters or the moment. `views` are the
    definitions that it was made of. `count_found_rows` is SQL_CALC_FOUND_ROWS: FOUND_ROWS() then
    tells how many rows there were without LIMIT.
    """

    node: Node
    tables: tuple[Table, ...]
    keys: tuple[Key, ...] = ()
    filter: Expression | None = None
    windows: tuple[WindowFunction, ...] = ()
    outputs: tuple[Expression, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    order_by: tuple[Order, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    default: Row | None = None
    prior: tuple[tuple[int, Query | Recursion | DocumentRows], ...] = ()
    shareable: bool = False
    distinct: bool = False
    count_found_rows: bool = False
    views: tuple[CatalogView, ...] = ()
    locking: tuple[Locking, ...] = ()

    @property
    def table(self) -> Table | None:
        """One of the tables; None if there is none to read."""
        return self.tables[0] if self.tables else None


@dataclass(frozen=True, slots=True)
class Recursion:
    """A recursive common table expression: the rows of `first`, and again and again those of `following`.

    Each time, `following` reads the rows of the round before as `table`; it ends when there are
    none, or with error 3636 after `depth_max` rounds. `distinct`: a row that was there before is
    not counted. `limit` and `offset` are for all rows together.
    """

    first: Query
    following: Query
    table: int
    distinct: bool
    depth_max: int
    limit: Expression | None = None
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """JSON_TABLE: the rows of each document that `documents` has in its one column, each after the document's bytes."""

    documents: Query
    table: JsonTable


@dataclass(frozen=True, slots=True)
class Directed:
    """UPDATE or DELETE of the rows that a query finds, in one table or several.

    Each change comes with where in the outputs of `query` the row of its table begins; rows
    that are all NULL (of an outer join) are left alone, and each row is changed once.
    Assignments read the table's row, followed by all outputs of the query.
    """

    query: Query
    changes: tuple[tuple[Update | Delete, int], ...]

    @property
    def table(self) -> Table:
        return self.changes[0][0].table


Statement = Insert | Update | Delete | Query | Directed


@dataclass(frozen=True, slots=True)
class Plan:
    """One statement, planned. `parameter_types` are what PREPARE reports for each `?`.

    `batch` is (first parameter, parameters per row) of an Insert whose one row stands for any
    number of them: the parameters given then hold so many values for each row, one row
    after the other. `vectors` has the parameter vector of each.

    `first` are SELECTs of no table that are to be evaluated once before, for what they assign to user variables.
    """

    statement: Statement
    parameter_types: tuple[SqlType, ...] = ()
    facts: tuple[str, ...] = ()
    batch: tuple[int, int] | None = None
    first: tuple[Query, ...] = ()
    views: tuple[CatalogView, ...] = ()
    """Those that the statement writes through."""
    text: str = field(default="", compare=False)
    """The statement, with `?` for its literals."""
    uses: frozenset[ColumnUse] = field(default=frozenset(), compare=False)
    """See `controller.sql.parameters`. Of a statement that writes through views, those of their tables."""

    def vectors(self, parameters: Sequence[Value], facts: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        """What the statement's expressions are to be evaluated with, once for each vector."""
        if self.batch is None:
            return [(*parameters, *facts)]
        start, width = self.batch
        tail = len(self.parameter_types) - start - width
        end = len(parameters) - tail
        head, rest = tuple(parameters[:start]), (*parameters[end:], *facts)
        return [(*head, *parameters[at : at + width], *rest) for at in range(start, end, width)]
