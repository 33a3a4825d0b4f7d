"""An inner join under construction: relations, conditions over them, and computed columns.

Everything that can be one n-ary join stays one product until a node is needed; `close` makes
that node in canonical form: inputs in a fixed order, equalities of columns apart from the
other conditions, outputs sorted by where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from controller.sql.query.canonical import digest, normalised
from controller.sql.query.fields import Relation
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.expressions.rewriting import mapped, substituted
from dataflow.functions import call, is_volatile
from dataflow.plan.join_shape import key_class
from dataflow.plan.node import Join, LeftJoin, Node
from dataflow.values.types import Kind, SqlType


@dataclass(slots=True)
class Product:
    """`values` are computed columns, in terms of the inputs' columns."""

    inputs: list[Relation]
    conditions: list[Expression] = field(default_factory=list)
    values: dict[int, Expression] = field(default_factory=dict)

    @property
    def ids(self) -> set[int]:
        return {number for each in self.inputs for number in each.ids} | set(self.values)

    def expression(self, expression: Expression) -> Expression:
        """`expression` in terms of the inputs' columns."""
        return substituted(expression, self.values)

    def add(self, conditions: Iterable[Expression]) -> None:
        self.conditions += [self.expression(each) for each in conditions]

    def define(self, number: int, value: Expression) -> None:
        self.values[number] = self.expression(value)

    def absorb(self, other: Product) -> None:
        self.inputs += other.inputs
        self.conditions += other.conditions
        self.values |= other.values

    def covering(self, ids: set[int]) -> int | None:
        """The one input that has all of `ids`, if there is one; computed columns have none."""
        for place, each in enumerate(self.inputs):
            if ids <= set(each.ids):
                return place
        return None


def is_key_equality(left: SqlType, right: SqlType) -> bool:
    """Whether `=` of the two types is equality of keys, so that an index can answer it."""
    kinds = (left.kind, right.kind)
    if Kind.JSON in kinds or Kind.NULL in kinds:
        return False
    if (left.kind is Kind.TIMESTAMP) != (right.kind is Kind.TIMESTAMP):
        return False  # the session's time zone is in between
    return key_class(left) == key_class(right)


def column_equality(condition: Expression) -> tuple[Column, Column] | None:
    match condition:
        case Call("=", (Column() as left, Column() as right)) if is_key_equality(left.type, right.type):
            return left, right
    return None


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """All of the conditions, in canonical order."""
    found = sorted({normalised(each) for each in conditions}, key=repr)
    if not found:
        return None
    return found[0] if len(found) == 1 else call("and", *found)


def close(product: Product, needed: Iterable[int]) -> Relation:
    """The node of a product; its columns include `needed`, in no particular order."""
    wanted = set(needed)
    inputs = product.inputs
    if len(inputs) == 1 and not product.conditions and wanted <= set(inputs[0].ids):
        return inputs[0]
    ordered = sorted(inputs, key=lambda each: digest(each.node))
    joined = Relation(Join(tuple(each.node for each in ordered)), tuple(n for each in ordered for n in each.ids))
    equalities, filters = _split(product, ordered, joined)
    outputs: list[tuple[tuple[int, int, str], Expression, int]] = []
    places = {number: place for place, number in reversed(list(enumerate(joined.ids)))}
    for number in wanted:
        value = product.values.get(number)
        if value is None:
            place = places[number]
            outputs.append(((0, place, ""), Column(place, joined.node.types[place]), number))
        else:
            bound = joined.bind(value)
            outputs.append(((1, 0, repr(bound)), bound, number))
    outputs.sort(key=lambda each: (each[0], each[2]))
    values, ids = tuple(value for _, value, _ in outputs), tuple(number for _, _, number in outputs)
    if len(ordered) == 1 and not filters:
        return _projection(ordered[0].node, values, ids)
    return Relation(Join(tuple(each.node for each in ordered), equalities, conjunction(filters), values), ids)


def _projection(node: Node, outputs: tuple[Expression, ...], ids: tuple[int, ...]) -> Relation:
    """A row of `outputs` for each row of a node, in any order of columns: the node itself if that is all of them."""
    shown = dict(zip(outputs, ids, strict=True))
    columns = [Column(place, kind) for place, kind in enumerate(node.types)]
    if len(outputs) == len(columns) and all(column in shown for column in columns):
        return Relation(node, tuple(shown[column] for column in columns))
    return Relation(projected(node, outputs), ids)


def projected(node: Node, outputs: tuple[Expression, ...]) -> Node:
    """A row of `outputs` for each row of a node, computed by a join itself if it is one."""
    if not isinstance(node, Join | LeftJoin):
        return Join((node,), outputs=outputs)
    inner = node.outputs
    return replace(node, outputs=outputs if inner is None else tuple(mapped(each, lambda c: inner[c.index]) for each in outputs))


def close_exactly(product: Product, wanted: Sequence[int]) -> Relation:
    """As `close`, with exactly the columns asked for, in that order."""
    found = close(product, wanted)
    if found.ids == tuple(wanted):
        return found
    outputs = tuple(Column(found.position(number), found.node.types[found.position(number)]) for number in wanted)
    return Relation(projected(found.node, outputs), tuple(wanted))


def _split(
    product: Product, ordered: Sequence[Relation], joined: Relation
) -> tuple[tuple[tuple[int, int], ...], list[Expression]]:
    """The equalities that join inputs, one for each link of a class, and all other conditions."""
    owner = {number: place for place, each in enumerate(ordered) for number in each.ids}
    places = {number: place for place, number in reversed(list(enumerate(joined.ids)))}
    classes: dict[int, set[int]] = {}
    filters: list[Expression] = []
    for condition in product.conditions:
        pair = column_equality(condition)
        if pair is None or owner[pair[0].index] == owner[pair[1].index]:
            filters.append(mapped(condition, lambda column: Column(places[column.index], column.type)))
            continue
        left, right = places[pair[0].index], places[pair[1].index]
        merged = classes.get(left, {left}) | classes.get(right, {right})
        for each in merged:
            classes[each] = merged
    equalities = set()
    for members in classes.values():
        first, *rest = sorted(members)
        equalities |= {(first, other) for other in rest}
    return tuple(sorted(equalities)), filters


def only(expression: Expression, ids: set[int]) -> bool:
    """Whether the expression reads something, and nothing outside of `ids`.

    What is left to chance is drawn for each row of everything.
    """
    used = columns_of(expression)
    return bool(used) and used <= ids and not is_volatile(expression)
