"""The plan language of the dataflow: few node kinds, plain values, equal when they mean the same.

A node says which collection it is, not how it is kept: keys, indexes and partial state come
from `key_tracing` and `graph`. Nodes hash by content (computed once), so equal subqueries of
different queries are one node. Expressions of a node read its input row; those of a node with
several inputs read the rows of all inputs, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property

from dataflow.expressions.expression import Column, Expression
from dataflow.values.types import SqlType

Columns = tuple[int, ...]


def _content_hash(node: object) -> int:
    """Hash a frozen node once: its inputs' hashes are already known."""
    found = node.__dict__.get("_hash")
    if found is None:
        values = tuple(getattr(node, each.name) for each in fields(node) if each.compare)  # type: ignore[arg-type]
        found = node.__dict__["_hash"] = hash((type(node).__name__, values))
    return int(found)


@dataclass(frozen=True)
class Base:
    """A base table. `primary_key` are column positions; no two rows agree on all of them.

    `columns` are the ids of its columns where it has not all of the table's, see `dataflow.plan.column_use`. `column_names` are for people,
    and empty where nobody has said them.
    """

    table: int
    types: tuple[SqlType, ...]
    primary_key: Columns
    name: str = field(default="", compare=False)
    columns: Columns = ()
    column_names: tuple[str, ...] = field(default=(), compare=False)

    __hash__ = _content_hash


@dataclass(frozen=True)
class Join:
    """Rows of all inputs that agree on every equality and pass `filter`, mapped to `outputs`.

    Equalities are pairs of positions in the concatenated row and never hold for NULL. One
    input makes it filter and projection. `outputs` of None keeps the concatenated row.
    """

    inputs: tuple[Node, ...]
    equalities: tuple[tuple[int, int], ...] = ()
    filter: Expression | None = None
    outputs: tuple[Expression, ...] | None = None

    __hash__ = _content_hash

    @cached_property
    def input_types(self) -> tuple[SqlType, ...]:
        return tuple(each for node in self.inputs for each in node.types)

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return self.input_types if self.outputs is None else tuple(each.type for each in self.outputs)


@dataclass(frozen=True)
class LeftJoin:
    """Each left row with its matching right rows, or once with NULLs if there is none.

    `equalities` are (left position, right position), each within its own input; `filter` is
    the rest of ON and reads the concatenated row, as do `outputs`.
    """

    left: Node
    right: Node
    equalities: tuple[tuple[int, int], ...]
    filter: Expression | None = None
    outputs: tuple[Expression, ...] | None = None

    __hash__ = _content_hash

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        both = self.left.types + self.right.types
        return both if self.outputs is None else tuple(each.type for each in self.outputs)


@dataclass(frozen=True)
class SemiJoin:
    """Left rows for which some right row matches; with `negated`, those for which none does."""

    left: Node
    right: Node
    equalities: tuple[tuple[int, int], ...]
    filter: Expression | None = None
    negated: bool = False

    __hash__ = _content_hash

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.left.types


@dataclass(frozen=True, slots=True)
class Order:
    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One output of an aggregate; see `dataflow.aggregates.accumulator` for the functions.

    `type` is the result's: it decides DECIMAL or DOUBLE arithmetic and the scale. `order` and
    `separator` are GROUP_CONCAT's. `bytes_max` bounds its text, and the documents of JSON's aggregates.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    distinct: bool = False
    order: tuple[Order, ...] = ()
    separator: str = ","
    bytes_max: int = 1024


@dataclass(frozen=True)
class Aggregate:
    """One row for each group: the group's columns, then the functions' values.

    A group is the rows equal under their columns' collations; where such a collation calls
    different texts equal, the output shows the least of them. Without `group` there is
    always exactly one row.
    """

    input: Node
    group: Columns
    functions: tuple[AggregateFunction, ...] = ()

    __hash__ = _content_hash

    def __post_init__(self) -> None:
        assert len(set(self.group)) == len(self.group), "a group names each column once"

    @cached_property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(self.input.types[c] for c in self.group) + tuple(each.type for each in self.functions)


def distinct(node: Node) -> Aggregate:
    """DISTINCT is a group by every column that asks for nothing else."""
    return Aggregate(node, tuple(range(len(node.types))))


@dataclass(frozen=True)
class TopK:
    """Of each partition, the rows at offset … offset + limit in `order`; ties fall by the whole row."""

    input: Node
    partition: Columns
    order: tuple[Order, ...]
    limit: int
    offset: int = 0

    __hash__ = _content_hash

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.input.types


@dataclass(frozen=True)
class Union:
    """All rows of all inputs (UNION ALL); wrap in `distinct` for UNION."""

    inputs: tuple[Node, ...]

    __hash__ = _content_hash

    @property
    def types(self) -> tuple[SqlType, ...]:
        return self.inputs[0].types


Node = Base | Join | LeftJoin | SemiJoin | Aggregate | TopK | Union


def bases_of(node: Node) -> Iterator[Base]:
    """The leaves of the node, some of which may be equal."""
    if isinstance(node, Base):
        yield node
    for each in inputs_of(node):
        yield from bases_of(each)


def tables_of(node: Node) -> frozenset[int]:
    """The base tables that the node is made of."""
    return frozenset(base.table for base in bases_of(node))


def inputs_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Base():
            return ()
        case Join(inputs) | Union(inputs):
            return inputs
        case LeftJoin(left, right) | SemiJoin(left, right):
            return (left, right)
        case Aggregate(source) | TopK(source):
            return (source,)


def source_column(outputs: tuple[Expression, ...] | None, column: int) -> int | None:
    """The input position that output `column` copies, or None if it is computed."""
    if outputs is None:
        return column
    expression = outputs[column]
    return expression.index if isinstance(expression, Column) else None


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """The expressions of the node itself, not of its inputs."""
    match node:
        case Join() | LeftJoin():
            return (*(() if node.filter is None else (node.filter,)), *(node.outputs or ()))
        case SemiJoin():
            return () if node.filter is None else (node.filter,)
        case Aggregate():
            ordered = (each.expression for function in node.functions for each in function.order)
            return (*(argument for function in node.functions for argument in function.arguments), *ordered)
        case TopK():
            return tuple(each.expression for each in node.order)
        case _:
            return ()
