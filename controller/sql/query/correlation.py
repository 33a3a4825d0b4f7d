"""Correlated subqueries taken out of their query.

Two ways, the first where it is possible:

- *lifting*: `inner column = outer expression` in the WHERE is dropped, and the inner column is
  carried through groups, distinct rows and LIMIT to the result, which is then joined by it;
- *domain*: the distinct values of all outer columns that the subquery reads become one more
  table of its FROM, carried the same way. Values are told apart exactly, NULLs included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.sql.query.block import (
    AnyBlock,
    Block,
    From,
    Inner,
    Leaf,
    Left,
    SetBlock,
    conditions_of,
    leaves,
    outer_ids,
    rewritten,
    rewritten_source,
)
from controller.sql.query.fields import Relation
from controller.sql.query.product import Product, close, is_key_equality
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.expressions.source import text_key
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.plan.node import Join, distinct
from dataflow.values.types import Kind, SqlType

if TYPE_CHECKING:
    from controller.sql.query.building import Builder

_BINARY = SqlType(Kind.VARBINARY)


@dataclass(slots=True)
class Detached:
    """A block without outer references; `links` say which of its rows belong to an outer row."""

    block: AnyBlock
    carried: list[int]
    links: list[Expression]


def detach(builder: Builder, product: Product, block: AnyBlock) -> Detached:
    """Take `block`, a subquery of a query over `product`, out of it."""
    outer = outer_ids(block)
    if not outer:
        return Detached(block, [], [])
    if isinstance(block, Block):
        lifted = _lift(block, outer)
        if lifted is not None:
            return lifted
    return _with_domain(builder, product, block, outer)


def split_where(block: Block) -> tuple[Block, list[Expression]]:
    """The block with all conditions of its inner joins in WHERE, and those that read outer columns apart."""
    source, pulled = _pulled(block.source)
    outer = outer_ids(block)
    conditions = pulled + block.where
    links = [each for each in conditions if columns_of(each) & outer]
    local = [each for each in conditions if not columns_of(each) & outer]
    return replace(block, source=source, where=local), links


def reads_deeply(block: Block) -> bool:
    """Whether outer columns are read elsewhere than in the WHERE itself and the outputs."""
    outer = outer_ids(block)
    for subquery in block.subqueries.values():
        if outer_ids(subquery.block) & outer or any(columns_of(each) & outer for each in subquery.operands):
            return True
    if any(leaf.derived is not None and outer_ids(leaf.derived) for leaf in leaves(block.source)):
        return True
    source, _ = _pulled(block.source)
    return any(columns_of(each) & outer for each in conditions_of(source))


def _pulled(source: From) -> tuple[From, list[Expression]]:
    if not isinstance(source, Inner):
        return source, []
    found = list(source.conditions)
    items: list[From] = []
    for item in source.items:
        inner, conditions = _pulled(item)
        items.append(inner)
        found += conditions
    return Inner(items, []), found


def _lift(block: Block, outer: set[int]) -> Detached | None:
    local, links = split_where(block)
    if outer_ids(local):
        return None
    carried: list[int] = []
    for link in links:
        column = _linked_column(link, outer, block)
        if column is None:
            return None
        if column not in carried:
            carried.append(column)
    return Detached(local, carried, links)


def _linked_column(link: Expression, outer: set[int], block: Block) -> int | None:
    """The inner column of `column = outer expression`."""
    if isinstance(link, Call) and link.function == "=":
        for one, other in (link.arguments, link.arguments[::-1]):
            if (
                isinstance(one, Column)
                and one.index not in outer
                and one.index not in block.subqueries
                and columns_of(other) <= outer
                and is_key_equality(one.type, other.type)
            ):
                return one.index
    return None


def _with_domain(builder: Builder, product: Product, block: AnyBlock, outer: set[int]) -> Detached:
    ids = sorted(outer)
    missing = outer - product.ids
    if missing:
        raise Unsupported("outer references beyond the query around a subquery of this kind")
    place = product.covering(outer)
    source = product.inputs[place] if place is not None else close(product, builder.needed(product) | outer)
    outputs: list[Expression] = []
    columns: list[int] = []
    mapping: dict[int, Expression] = {}
    links: list[Expression] = []
    for number in ids:
        position = source.position(number)
        column = Column(number, source.node.types[position])
        inner = builder.numbering.fresh(column.type, builder.numbering.may_be_null(column))
        mapping[number] = inner
        outputs.append(Column(position, column.type))
        columns.append(inner.index)
        links.append(_identical(builder, column, inner))
        if text_key(column.type) is not None:
            # Texts that only the collation calls equal are different here.
            exact = builder.numbering.fresh(_BINARY, True)
            outputs.append(cast(Column(position, column.type), _BINARY))
            columns.append(exact.index)
            links.append(call("<=>", cast(column, _BINARY), exact))
    domain = Relation(distinct(Join((source.node,), outputs=tuple(outputs))), tuple(columns))
    builder.used.update(columns)
    return Detached(_placed(builder, rewritten(block, mapping), domain), columns, links)


def _identical(builder: Builder, outer: Column, inner: Column) -> Expression:
    plain = not builder.numbering.may_be_null(outer) and is_key_equality(outer.type, inner.type)
    return call("=" if plain else "<=>", outer, inner)


def _placed(builder: Builder, block: AnyBlock, domain: Relation) -> AnyBlock:
    if isinstance(block, SetBlock):
        left, right = block.branches
        return replace(block, branches=(_placed(builder, left, domain), _placed(builder, right, domain)))
    return replace(block, source=_beside(builder, block.source, domain))


def _reads(source: From, ids: set[int]) -> bool:
    """Whether the conditions of joins or derived tables in `source` read one of `ids`."""
    return any(columns_of(each) & ids for each in conditions_of(source)) or any(
        leaf.derived is not None and outer_ids(leaf.derived) & ids for leaf in leaves(source)
    )


def _beside(builder: Builder, source: From, domain: Relation) -> From:
    """The domain joined in, as far down as what reads it."""
    ids = set(domain.ids)
    leaf = Leaf((), relation=domain)
    if not _reads(source, ids) or isinstance(source, Leaf):
        return Inner([leaf, source], [])
    if isinstance(source, Left):
        right = source.right
        links: list[Expression] = []
        if _reads(right, ids):
            right, links = _with_copy(builder, right, domain)
        return Left(_beside(builder, source.left, domain), right, [*source.conditions, *links])
    items: list[From] = []
    conditions = list(source.conditions)
    placed = False
    for item in source.items:
        if _reads(item, ids):
            if placed:
                item, links = _with_copy(builder, item, domain)
                conditions += links
            else:
                item = _beside(builder, item, domain)
                placed = True
        items.append(item)
    return Inner(items if placed else [leaf, *items], conditions)


def _with_copy(builder: Builder, source: From, domain: Relation) -> tuple[From, list[Expression]]:
    """`source` with a domain of its own, and the conditions that make it the same as the other."""
    mapping: dict[int, Expression] = {}
    links: list[Expression] = []
    ids: list[int] = []
    for number, kind in zip(domain.ids, domain.node.types):
        column = Column(number, kind)
        inner = builder.numbering.fresh(kind, builder.numbering.may_be_null(column))
        mapping[number] = inner
        ids.append(inner.index)
        links.append(_identical(builder, column, inner))
    builder.used.update(ids)
    copy = Relation(domain.node, tuple(ids))
    return _beside(builder, rewritten_source(source, mapping), copy), links
