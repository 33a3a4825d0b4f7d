"""The shape of a join: classes of positions that are equal in every output row.

Positions are those of the concatenated row. Owns no order of execution: see `pipeline`.
"""

from __future__ import annotations

from functools import lru_cache

from dataflow.errors import Unsupported
from dataflow.expressions.expression import Call, Column, Expression
from dataflow.plan.node import Columns, Join, LeftJoin, Node, SemiJoin, source_column
from dataflow.values.types import BLOBS, DATES, REALS, STRINGS, Kind, SqlType


def key_class(kind: SqlType) -> tuple[str, ...]:
    """Types of one class have keys that are equal exactly when SQL calls the values equal."""
    if kind.kind in STRINGS:
        return ("text", kind.collation or "")
    if kind.kind in BLOBS:
        return ("bytes",)
    if kind.kind in DATES:
        return ("date",)
    if kind.kind is Kind.TIME:
        return ("time",)
    return ("real",) if kind.kind in REALS else ("exact",)


def check_equality(left: SqlType, right: SqlType) -> None:
    """Keys are looked up as they are, so the planner converts one side where types differ."""
    if key_class(left) != key_class(right):
        raise Unsupported(f"equality of {left.kind.value} and {right.kind.value} without conversion as a join key")


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    if expression is None:
        return ()
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(each for argument in expression.arguments for each in conjuncts(argument))
    return (expression,)


class JoinShape:
    """`inputs`: each input's positions. `members`: the positions equal to a position."""

    def __init__(self, widths: tuple[int, ...], equalities: tuple[tuple[int, int], ...]) -> None:
        self.offsets: list[int] = []
        self.input_of: list[int] = []
        for number, width in enumerate(widths):
            self.offsets.append(len(self.input_of))
            self.input_of.extend([number] * width)
        self.members: list[list[int]] = [[position] for position in range(len(self.input_of))]
        for left, right in equalities:
            if self.members[left] is not self.members[right]:
                joined = sorted(self.members[left] + self.members[right])
                for position in joined:
                    self.members[position] = joined

    def column(self, position: int) -> int:
        """The column of its own input that `position` is."""
        return position - self.offsets[self.input_of[position]]

    def position(self, number: int, column: int) -> int:
        return self.offsets[number] + column

    def width(self, number: int) -> int:
        end = self.offsets[number + 1] if number + 1 < len(self.offsets) else len(self.input_of)
        return end - self.offsets[number]

    def column_in(self, number: int, position: int) -> int | None:
        """A column of input `number` that always equals `position`."""
        if self.input_of[position] == number:
            return self.column(position)
        return next((self.column(each) for each in self.members[position] if self.input_of[each] == number), None)


@lru_cache(maxsize=4096)
def shape_of(node: Join | LeftJoin | SemiJoin) -> JoinShape:
    if isinstance(node, Join):
        types, equalities = node.input_types, node.equalities
        widths = tuple(len(each.types) for each in node.inputs)
    else:
        types = node.left.types + node.right.types
        equalities = tuple((left, len(node.left.types) + right) for left, right in node.equalities)
        widths = (len(node.left.types), len(node.right.types))
    for left, right in equalities:
        check_equality(types[left], types[right])
    return JoinShape(widths, equalities)


@lru_cache(maxsize=4096)
def is_unique(node: Node, columns: Columns) -> bool:
    """Whether no two rows of `node` ever agree on `columns`."""
    from dataflow.plan.node import Aggregate, Base, TopK, Union

    match node:
        case Base():
            return set(node.primary_key) <= set(columns)
        case Aggregate():
            return len(node.group) <= len(set(columns) & set(range(len(node.group))))
        case TopK():
            return is_unique(node.input, columns) or (node.limit <= 1 and set(node.partition) <= set(columns))
        case SemiJoin():
            return is_unique(node.left, columns)
        case Union():
            return len(node.inputs) == 1 and is_unique(node.inputs[0], columns)
        case LeftJoin():
            known = [source_column(node.outputs, column) for column in columns]
            left = tuple(sorted({each for each in known if each is not None and each < len(node.left.types)}))
            right = tuple(sorted(right for _, right in node.equalities))
            return is_unique(node.left, left) and is_unique(node.right, right)
        case Join():
            return _is_unique_join(node, columns)


def _is_unique_join(node: Join, columns: Columns) -> bool:
    """Follow the equalities: a row of an input is known once one of its keys is."""
    shape = shape_of(node)
    known: set[int] = set()
    for column in columns:
        position = source_column(node.outputs, column)
        if position is not None:
            known.update(shape.members[position])
    unknown = set(range(len(node.inputs)))
    while True:
        found = {
            number
            for number in unknown
            if is_unique(
                node.inputs[number],
                tuple(c for c in range(shape.width(number)) if shape.position(number, c) in known),
            )
        }
        if not found:
            return not unknown
        unknown -= found
        for number in found:
            for column in range(shape.width(number)):
                known.update(shape.members[shape.position(number, column)])


def output_column(node: Join | LeftJoin | SemiJoin, position: int) -> int | None:
    """The output that always equals `position` of the concatenated row, if there is one."""
    equal = set(shape_of(node).members[position]) if isinstance(node, Join) else {position}
    outputs = None if isinstance(node, SemiJoin) else node.outputs
    if outputs is None:
        return position
    for number, expression in enumerate(outputs):
        if isinstance(expression, Column) and expression.index in equal:
            return number
    return None
