"""Blocks become nodes: FROM and WHERE one product, then groups, distinct rows and the first k.

`Builder.build` gives the whole result of a block, with the `carried` columns beside its
outputs: groups, partitions and distinct rows are made for each value of those. That is what
takes a correlated subquery out of its query (see `subqueries`), and what lets a view be
looked up by a parameter (see `keys`).

Conditions are put as far down as they go; an outer join whose optional rows a condition
rejects is an inner join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from controller.sql.query.block import (
    AnyBlock,
    Block,
    From,
    Inner,
    Leaf,
    Left,
    SetBlock,
    Subquery,
    draws,
    leaves,
    outer_ids,
    own_ids,
)
from controller.sql.query.fields import Numbering, Relation, computed_output
from controller.sql.query.groups import group
from controller.sql.query.lateral import attach_derived, attach_optional, in_sight, reads_before
from controller.sql.query.limits import first_rows, has_unknown_limit
from controller.sql.query.product import Product, close, close_exactly, column_equality, conjunction, only
from controller.sql.query.set_operations import set_operation
from controller.sql.query.subqueries import attach, attach_condition
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.plan.node import (
    Base,
    LeftJoin,
    Order,
    distinct,
)

_REJECTING = frozenset({"=", "<>", "<", "<=", ">", ">=", "like", "not like", "between", "not between", "in", "regexp", "is not null"})
"""Not true if the column they are applied to is NULL."""


@dataclass(slots=True)
class Builder:
    """Builds the nodes of one statement. `used` are the columns that anything reads.

    `prior` are blocks that no node can be: each is evaluated first, and read as a table.
    """

    numbering: Numbering
    used: set[int] = field(default_factory=set)
    prior: list[tuple[int, AnyBlock]] = field(default_factory=list)
    applied: list[Expression] = field(default_factory=list)
    """Conditions that are applied after the nodes, to their rows."""

    # -- whole blocks

    def build(self, block: AnyBlock, carried: Sequence[int] = ()) -> Relation:
        """The block's rows: its outputs in order, then the carried columns."""
        if has_unknown_limit(block) and not carried:
            return self.evaluated_before(block, carried)
        wanted = [column.index for column, _ in block.outputs] + list(carried)
        if isinstance(block, SetBlock):
            relation = set_operation(self, block, carried)
            limited = Product([relation])
        else:
            if block.windows and carried:
                block = self._partitioned(block, carried)
                limited = Product([self.evaluated_before(replace(block, distinct=False, order_by=[], limit=None, offset=None), ())])
            elif block.windows:
                return self.evaluated_before(block, carried)
            else:
                limited = self.rows(block, carried)
        if isinstance(block, Block) and block.distinct:
            unique = close_exactly(limited, list(dict.fromkeys([*(column.index for column, _ in block.outputs), *carried])))
            limited = Product([Relation(distinct(unique.node), unique.ids)])
        if block.limit is not None:
            limited = Product([first_rows(self, block, limited, wanted, carried)])
        return close_exactly(limited, wanted)

    def rows(self, block: Block, carried: Sequence[int] = ()) -> Product:
        """The block before DISTINCT and LIMIT, its outputs computed."""
        product = self.core(block)
        if block.grouping is not None:
            product = group(product, block.grouping, carried)
        for condition in block.having:
            product = attach_condition(self, product, condition, block.subqueries)
        return self.with_outputs(block, product)

    def with_outputs(self, block: Block, product: Product) -> Product:
        """Outputs defined, with the subqueries that they, windows and ORDER BY read."""
        expressions = [value for _, value in block.outputs] + [item.expression for item in block.order_by]
        for window in block.windows:
            expressions += [*window.function.arguments, *window.partition, *(each.expression for each in window.order)]
        product = self.with_subqueries(product, expressions, block.subqueries)
        for column, value in block.outputs:
            product.define(column.index, value)
        return product

    def with_subqueries(
        self, product: Product, expressions: Iterable[Expression], subqueries: dict[int, Subquery]
    ) -> Product:
        """Every subquery that the expressions read, attached once."""
        for expression in expressions:
            for number in sorted(columns_of(expression) & subqueries.keys()):
                if number not in product.ids:
                    inner = subqueries[number].operands
                    product = self.with_subqueries(product, inner, subqueries)
                    product = attach(self, product, subqueries[number])
        return product

    def core(self, block: Block) -> Product:
        """FROM and WHERE, and the subqueries that groups need."""
        plain = [each for each in block.where if not columns_of(each) & block.subqueries.keys()]
        product = self.source(block.source, plain, block.subqueries)
        for condition in block.where:
            if columns_of(condition) & block.subqueries.keys():
                product = attach_condition(self, product, condition, block.subqueries)
        if block.grouping is not None:
            inner: list[Expression] = [value for _, value in block.grouping.keys]
            for _, function in block.grouping.functions + block.grouping.arbitrary:
                inner += [*function.arguments, *(each.expression for each in function.order)]
            product = self.with_subqueries(product, inner, block.subqueries)
        return product

    def needed(self, product: Product) -> set[int]:
        return product.ids & self.used

    # -- FROM

    def source(self, source: From, conditions: list[Expression], subqueries: dict[int, Subquery]) -> Product:
        """The join tree under `conditions`, which hold for every row that comes out."""
        match source:
            case Leaf():
                product = self._leaf(source)
                product.add(conditions)
                return product
            case Inner(items, own):
                return self._inner(items, [*own, *conditions], subqueries)
            case Left(left, right, own):
                optional = own_ids(right)
                if any(_rejects_nulls(each, optional) for each in (*conditions, *self.applied)):
                    return self._inner([left, right], [*own, *conditions], subqueries)
                return self._left(left, right, own, conditions, subqueries)

    def _leaf(self, leaf: Leaf) -> Product:
        if leaf.relation is not None:
            return Product([leaf.relation])
        ids = tuple(each.id for each in leaf.fields)
        if leaf.table is not None:
            places = {column.id: place for place, column in enumerate(leaf.table.columns)}
            base = Base(
                leaf.table.id,
                tuple(column.type for column in leaf.table.columns),
                tuple(places[part.column_id] for part in leaf.table.primary_key.parts),
                f"{leaf.table.database}.{leaf.table.name}",
            )
            return Product([Relation(base, ids)])
        assert leaf.derived is not None
        if outer_ids(leaf.derived):
            raise Unsupported("outer references in a derived table here")
        if draws(leaf.derived):
            return Product([self.evaluated_before(leaf.derived, ())])  # once, and not with another that looks the same
        if isinstance(leaf.derived, Block) and is_plain(leaf.derived):
            return self.rows(leaf.derived)
        return Product([self.build(leaf.derived)])

    def _inner(self, items: list[From], conditions: list[Expression], subqueries: dict[int, Subquery]) -> Product:
        product = Product([])
        items, opened = in_sight(items)
        conditions = [*opened, *conditions]
        rest = [each for each in conditions if not columns_of(each) & subqueries.keys()]
        for item in items:
            if isinstance(item, Leaf) and item.derived is not None and reads_before(item):
                product = attach_derived(self, product, item.derived)
                continue
            ids = own_ids(item)
            below = [each for each in rest if only(each, ids)]
            rest = [each for each in rest if not only(each, ids)]
            product.absorb(self.source(item, below, subqueries))
        product.add(rest)
        for each in conditions:
            if columns_of(each) & subqueries.keys():
                product = attach_condition(self, product, each, subqueries)
        return product

    def _left(
        self, left: From, right: From, own: list[Expression], conditions: list[Expression], subqueries: dict[int, Subquery]
    ) -> Product:
        left_ids, right_ids = own_ids(left), own_ids(right)
        above = [each for each in conditions if not only(each, left_ids)]
        kept = self.source(left, [each for each in conditions if only(each, left_ids)], subqueries)
        plain = [each for each in own if not columns_of(each) & subqueries.keys()]
        if isinstance(right, Leaf) and right.derived is not None and reads_before(right):
            if len(plain) < len(own):
                raise Unsupported("subqueries in the ON of an outer join with LATERAL")
            product = attach_optional(self, kept, right.derived, plain)
            product.add(above)
            return product
        optional = self.source(right, [each for each in plain if only(each, right_ids)], subqueries)
        filters = [each for each in plain if not only(each, right_ids)]
        for each in own:
            numbers = columns_of(each) & subqueries.keys()
            if not numbers:
                continue
            reads = columns_of(each) - numbers
            for number in numbers:
                reads |= outer_ids(subqueries[number].block)
                for operand in subqueries[number].operands:
                    reads |= columns_of(operand)
            if reads <= right_ids:
                optional = attach_condition(self, optional, each, subqueries)
            elif reads <= left_ids:
                kept = self.with_subqueries(kept, [each], subqueries)
                filters.append(each)
            else:
                return self._left_of_both(left, right, own, conditions, subqueries)
        joined = self.left_join(close(kept, self.needed(kept)), close(optional, self.needed(optional)), filters)
        product = Product([joined])
        product.add(above)
        return product

    def _left_of_both(
        self, left: From, right: From, own: list[Expression], conditions: list[Expression], subqueries: dict[int, Subquery]
    ) -> Product:
        """A subquery in the ON reads both sides: LEFT JOIN LATERAL (SELECT * FROM right WHERE …) is the same."""
        left_ids = own_ids(left)
        kept = self.source(left, [each for each in conditions if only(each, left_ids)], subqueries)
        columns = [Column(each.id, each.type) for leaf in leaves(right) for each in leaf.fields if each.id in self.used]
        read = {number: subqueries[number] for each in own for number in columns_of(each) & subqueries.keys()}
        block = Block(right, own, [(each, each) for each in columns], [], subqueries=read)
        product = attach_optional(self, kept, block, [])
        product.add([each for each in conditions if not only(each, left_ids)])
        return product

    def left_join(self, left: Relation, right: Relation, conditions: list[Expression]) -> Relation:
        equalities, filters = linked(left, right, conditions)
        both = Relation(left.node, left.ids + right.ids)
        found = conjunction(both.bind(each) for each in filters)
        return Relation(LeftJoin(left.node, right.node, equalities, found), both.ids)

    # -- what no node can be

    def _partitioned(self, block: Block, carried: Sequence[int]) -> Block:
        """Windows within each value of the carried columns, which are outputs, as is what ORDER BY reads."""
        columns = [each for leaf in leaves(block.source) for each in _columns(leaf) if each.index in set(carried)]
        grouping = block.grouping
        if grouping is not None:
            if not grouping.explicit or grouping.rollup:
                raise Unsupported("window functions over an aggregate in a correlated subquery")
            grouping = replace(grouping, dependents=[*grouping.dependents, *columns])
        windows = [replace(each, partition=(*each.partition, *columns)) for each in block.windows]
        order = [(self.numbering.fresh(each.expression.type), each) for each in block.order_by]
        return replace(
            block,
            grouping=grouping,
            windows=windows,
            outputs=[*block.outputs, *((each, each) for each in columns), *((made, each.expression) for made, each in order)],
            columns=[computed_output("", each) for each, _ in (*block.outputs, *((each, each) for each in columns), *order)],
            order_by=[Order(made, each.descending) for made, each in order],
        )

    def evaluated_before(self, block: AnyBlock, carried: Sequence[int]) -> Relation:
        if carried or outer_ids(block):
            raise Unsupported("window functions in a subquery that is correlated in this way")
        table = self.numbering.fresh_table()
        self.prior.append((table, block))
        types = tuple(column.type for column, _ in block.outputs)
        return Relation(Base(table, types, ()), tuple(column.index for column, _ in block.outputs))


def _columns(leaf: Leaf) -> list[Column]:
    if leaf.relation is not None:
        return [Column(number, kind) for number, kind in zip(leaf.relation.ids, leaf.relation.node.types)]
    return [Column(each.id, each.type) for each in leaf.fields]


def linked(
    left: Relation, right: Relation, conditions: Iterable[Expression]
) -> tuple[tuple[tuple[int, int], ...], list[Expression]]:
    """Conditions between two relations: equalities of their columns, and the others."""
    equalities: set[tuple[int, int]] = set()
    filters: list[Expression] = []
    for condition in conditions:
        pair = column_equality(condition)
        if pair is not None:
            one, other = pair
            if one.index in right.ids and other.index in left.ids:
                one, other = other, one
            if one.index in left.ids and other.index in right.ids:
                equalities.add((left.position(one.index), right.position(other.index)))
                continue
        filters.append(condition)
    return tuple(sorted(equalities)), filters


def is_plain(block: Block) -> bool:
    """Whether the block is only joins, conditions and computed columns, and may be merged."""
    return (
        block.grouping is None
        and not block.windows
        and not block.distinct
        and block.limit is None
    )


def _rejects_nulls(condition: Expression, ids: set[int]) -> bool:
    match condition:
        case Call(function=function, arguments=arguments) if function in _REJECTING:
            tested = arguments if function in ("=", "<>", "<", "<=", ">", ">=") else arguments[:1]
            return any(isinstance(each, Column) and each.index in ids for each in tested)
        case Call("and", arguments):
            return any(_rejects_nulls(each, ids) for each in arguments)
        case Call("or", arguments):
            return all(_rejects_nulls(each, ids) for each in arguments)
    return False
