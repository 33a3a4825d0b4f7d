"""A query over one table as it was written: the table's rows, one WHERE over them, and what is made of those.

The plan of a query looks rows of its node up by keys, so that one node serves every value. Where the node is
made of a single table and nothing but conditions and columns, the same rows are those of the table that fulfil
one condition. A reader can then choose an index by all of it, and give rows as they are found.
"""

from __future__ import annotations

from dataclasses import replace

from controller.sql.plan import Key, Query
from dataflow.expressions.expression import Column, Expression
from dataflow.expressions.rewriting import mapped
from dataflow.functions import call
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Aggregate, Base, Join, Node, Order


def over_one_table(query: Query) -> Query | None:
    """The same query with the table as its node, no keys, and `filter` for its WHERE; None if it takes more."""
    node, distinct = query.node, query.distinct
    if query.prior or query.windows or query.default is not None:
        return None
    if isinstance(node, Aggregate):
        if not _is_distinct(query, node):
            return None
        node, distinct = node.input, True
    opened = _opened(node)
    if opened is None:
        return None
    base, within, columns = opened

    def new(expression: Expression) -> Expression:
        return mapped(expression, lambda column: columns[column.index])

    conditions = [new(_equality(key, query.node)) for key in query.keys]
    conditions += conjuncts(within)
    conditions += [new(each) for each in conjuncts(query.filter)]
    return replace(
        query,
        node=base,
        keys=(),
        filter=call("and", *conditions) if len(conditions) > 1 else conditions[0] if conditions else None,
        outputs=tuple([new(each) for each in query.outputs]),
        order_by=tuple([Order(new(each.expression), each.descending) for each in query.order_by]),
        distinct=distinct,
    )


def _opened(node: Node) -> tuple[Base, Expression | None, tuple[Expression, ...]] | None:
    """The table, the condition on its rows, and what each column of the node is of them."""
    match node:
        case Base():
            return node, None, tuple([Column(place, kind) for place, kind in enumerate(node.types)])
        case Join(inputs=(Base() as base,), equalities=(), filter=condition, outputs=outputs):
            return base, condition, _opened(base)[2] if outputs is None else outputs  # type: ignore[index]
    return None


def _is_distinct(query: Query, node: Aggregate) -> bool:
    """Whether the groups are the rows of a SELECT DISTINCT: all that tells two of them apart is shown, or is a key."""
    if node.functions or node.group != tuple(range(len(node.input.types))):
        return False
    shown = {each.index for each in query.outputs if isinstance(each, Column)}
    shown |= {key.column for key in query.keys if len(key.values) == 1}
    return len(shown) == len(node.group) and all(isinstance(each, Column) for each in query.outputs)


def _equality(key: Key, node: Node) -> Expression:
    column = Column(key.column, node.types[key.column])
    return call("=" if len(key.values) == 1 else "in", column, *key.values)
