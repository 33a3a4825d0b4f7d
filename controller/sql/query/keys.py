"""Last pass: the node of a whole statement, and what is left to do with its rows.

`column = ?` and `column IN (?, …)` in the WHERE are not part of the node but the key by which
its rows are looked up, so that one node serves every value. Under groups and DISTINCT the
column is carried along; the row of an aggregate over nothing is then the query's `default`.
Other conditions on parameters are applied to the node's rows, where that is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from controller.sql.plan import Key, Query, WindowFunction
from controller.sql.query.block import AnyBlock, Block, SetBlock, all_used
from controller.sql.query.building import Builder
from controller.sql.query.fields import Numbering, Relation
from controller.sql.query.groups import bound_function, group
from controller.sql.query.product import Product, close, close_exactly, conjunction, is_key_equality
from controller.sql.query.subqueries import OF_NOTHING, attach_condition
from dataflow.errors import MillraceError
from dataflow.expressions.expression import (
    Call,
    Column,
    Expression,
    Parameter,
    columns_of,
    parameters_of,
    walk,
)
from dataflow.expressions.rewriting import substituted
from dataflow.functions import is_deterministic, is_volatile
from dataflow.plan.node import Aggregate, Join, LeftJoin, Node, Order, SemiJoin, TopK, distinct, inputs_of
from dataflow.schema import Table
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.types import STRINGS, TEXTS, Row


def finish(block: AnyBlock, numbering: Numbering, tables: Sequence[Table]) -> Query:
    """The statement that a resolved block is."""
    builder = Builder(numbering, all_used(block))
    if isinstance(block, SetBlock):
        found = _finish_set(builder, block)
    else:
        found = _Finish(builder, block).query()
    prior = tuple((table, finish(each, numbering, ())) for table, each in builder.prior)
    shareable = not prior and is_shareable(found.node)
    return Query(
        found.node, tuple(tables), found.keys, found.filter, found.windows, found.outputs, tuple(block.columns),
        found.order_by, block.limit, block.offset, found.default, prior, shareable, found.distinct,
    )  # fmt: skip


def _finish_set(builder: Builder, block: SetBlock) -> Query:
    ids = [column.index for column, _ in block.outputs]
    limit, offset, block.limit, block.offset = block.limit, block.offset, None, None
    relation = builder.build(block)
    block.limit, block.offset = limit, offset
    order = tuple(Order(relation.bind(each.expression), each.descending) for each in block.order_by)
    return Query(relation.node, (), outputs=_columns(relation, ids), order_by=order)


KEY_COMBINATIONS_MAX = 10_000
"""Of several lists of values so many combinations are looked up; further lists are conditions on the rows."""


class _Finish:
    def __init__(self, builder: Builder, block: Block) -> None:
        self._builder = builder
        self._block = block
        self._keys: list[tuple[Column, tuple[Expression, ...]]] = []
        self._filters: list[Expression] = []

    def query(self) -> Query:
        block, builder = self._block, self._builder
        self._take_keys()
        builder.applied = [*self._filters, *self._conditions]
        builder.used |= {column.index for column, _ in self._keys}
        product = builder.core(block)
        carried = list(dict.fromkeys(column.index for column, _ in self._keys))
        grouping = block.grouping
        single = grouping is not None and not grouping.explicit and bool(carried)
        if grouping is not None:
            product = group(product, grouping, carried)
        for condition in block.having:
            if (single or _has_parameter(condition)) and not columns_of(condition) & block.subqueries.keys():
                self._filters.append(condition)
            else:
                product = attach_condition(builder, product, condition, block.subqueries)
        product = builder.with_outputs(block, product)
        if block.distinct and (block.windows or single or self._filters):
            return self._plain(product, single, True)
        if block.distinct:
            return self._distinct(product, carried)
        return self._plain(product, single)

    # -- keys

    def _take_keys(self) -> None:
        block = self._block
        self._conditions: list[Expression] = []
        if block.grouping is not None and block.grouping.rollup:
            return
        single = block.grouping is not None and not block.grouping.explicit
        if single and block.subqueries:
            return
        rest: list[Expression] = []
        combinations = 1
        for condition in block.where:
            found = None if columns_of(condition) & block.subqueries.keys() else key_equality(condition)
            if found is not None and self._may_be_key(*found) and combinations * len(found[1]) <= KEY_COMBINATIONS_MAX:
                combinations *= len(found[1])
                self._keys.append(found)
                self._conditions.append(condition)
            elif self._may_follow(condition):
                self._filters.append(condition)
            else:
                rest.append(condition)
        block.where = rest

    def _may_be_key(self, column: Column, values: tuple[Expression, ...]) -> bool:
        """Several values may not be looked up where their rows would have met in one group."""
        block = self._block
        if len(values) == 1 and not block.windows:
            return True
        if block.grouping is not None and all(value != column for _, value in block.grouping.keys):
            return False
        return not block.distinct or any(value == column for _, value in block.outputs)

    def _may_follow(self, condition: Expression) -> bool:
        block = self._block
        return (
            block.grouping is None
            and not block.distinct
            and _has_parameter(condition)
            and bool(columns_of(condition))
            and not columns_of(condition) & block.subqueries.keys()
        )

    # -- what is done with the rows

    def _distinct(self, product: Product, carried: list[int]) -> Query:
        """Distinct rows as a node, where nothing is left to be done with its rows but looking them up."""
        block = self._block
        ids = [column.index for column, _ in block.outputs]
        wanted = [*ids, *(each for each in carried if each not in ids)]
        unique = close_exactly(product, wanted)
        relation = Relation(distinct(unique.node), unique.ids)
        order = tuple(Order(relation.bind(each.expression), each.descending) for each in block.order_by)
        keys = tuple(Key(relation.position(column.index), values) for column, values in self._keys)
        return Query(relation.node, (), keys, outputs=_columns(relation, ids), order_by=order)

    def _plain(self, product: Product, single: bool, unique: bool = False) -> Query:
        block = self._block
        windows = {window.id: place for place, window in enumerate(block.windows)}
        reads = [product.expression(value) for _, value in block.outputs]
        orders = [product.expression(each.expression) for each in block.order_by]
        if unique:
            values = {column.index: value for column, value in block.outputs}
            orders = [product.expression(substituted(each.expression, values)) for each in block.order_by]
        filters = [product.expression(each) for each in self._filters]
        needed: set[int] = set()
        for each in (*reads, *orders, *filters, *_read_by(block, product)):
            needed |= columns_of(each)
        keys = [(_column(product, column), values) for column, values in self._keys]
        needed |= {column.index for column, _ in keys}
        relation = close(product, (needed - windows.keys()) & product.ids)
        width = len(relation.ids)
        extended = Relation(relation.node, (*relation.ids, *windows))

        def bind(expression: Expression) -> Expression:
            return extended.bind(expression)

        found = tuple(
            WindowFunction(
                bound_function(window.function, product, extended),
                tuple(bind(product.expression(each)) for each in window.partition),
                tuple(Order(bind(product.expression(each.expression)), each.descending) for each in window.order),
                window.frame,
            )
            for window in block.windows
        )
        assert width + len(found) == len(extended.ids)
        return Query(
            relation.node,
            (),
            tuple(Key(relation.position(column.index), values) for column, values in keys),
            conjunction(bind(each) for each in filters),
            found,
            tuple(bind(each) for each in reads),
            order_by=tuple(
                Order(bind(value), each.descending) for value, each in zip(orders, block.order_by)
            ),
            default=self._default(relation) if single else None,
            distinct=unique,
        )

    def _default(self, relation: Relation) -> Row:
        """The row of an aggregate over no rows."""
        assert self._block.grouping is not None
        known = {
            column.index: OF_NOTHING.get(function.function) for column, function in self._block.grouping.functions
        }
        return tuple(known.get(number) for number in relation.ids)


def _column(product: Product, column: Column) -> Column:
    """The column of an input that this one is, if it is one."""
    found = product.expression(column)
    return found if isinstance(found, Column) and found.type == column.type else column


def _read_by(block: Block, product: Product) -> Iterator[Expression]:
    for window in block.windows:
        for each in (*window.function.arguments, *window.partition, *(item.expression for item in window.order)):
            yield product.expression(each)


def _columns(relation: Relation, ids: Iterable[int]) -> tuple[Expression, ...]:
    places = [relation.position(number) for number in ids]
    return tuple(Column(place, relation.node.types[place]) for place in places)


def _has_parameter(expression: Expression) -> bool:
    return any(isinstance(each, Parameter) for each in walk(expression))


def key_equality(condition: Expression) -> tuple[Column, tuple[Expression, ...]] | None:
    """The column and the values of an equality with parameters that an index can answer."""
    match condition:
        case Call("=", (Column() as column, value)) if not isinstance(value, Column):
            values: tuple[Expression, ...] = (value,)
        case Call("=", (value, Column() as column)):
            values = (value,)
        case Call("in", (Column() as column, *several)):
            values = tuple(several)
        case _:
            return None
    kinds = {each.type: each for each in values if isinstance(each, Parameter)}
    others = [each for each in values if not isinstance(each, Parameter)]
    if not (kinds or any(map(_has_parameter, others))):
        return None
    if not all(_is_value(column, each) for each in (*kinds.values(), *others)):
        return None
    return column, values


def _is_value(column: Column, value: Expression) -> bool:
    if columns_of(value) or is_volatile(value):
        return False
    if column.type.kind in STRINGS and value.type.kind in TEXTS and column.type.kind.value != "json":
        try:
            return merged_collation((column, value), "=") == column.type.collation
        except MillraceError:
            return False
    return is_key_equality(column.type, value.type)


def is_shareable(node: Node) -> bool:
    """Whether the node's rows depend on the base tables alone."""
    for expression in expressions_in(node):
        if parameters_of(expression) or not is_deterministic(expression):
            return False
    return all(is_shareable(each) for each in inputs_of(node))


def expressions_in(node: Node) -> Iterator[Expression]:
    """The expressions of the node itself."""
    match node:
        case Join() | LeftJoin():
            if node.filter is not None:
                yield node.filter
            yield from node.outputs or ()
        case SemiJoin():
            if node.filter is not None:
                yield node.filter
        case Aggregate():
            for function in node.functions:
                yield from function.arguments
                for order in function.order:
                    yield order.expression
        case TopK():
            for order in node.order:
                yield order.expression
        case _:
            pass
