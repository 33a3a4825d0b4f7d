"""A node of the plan as one statement of Spark SQL over scans of its tables; `NoForm` where Spark would not give exactly the same rows.

Relations have columns `c0`, `c1`, … by their places in the node's rows, only those that somebody reads. What a filter says of one
table alone is evaluated by the scan itself, with the code that rows have: so it may be anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from backend.jobs.spark_expressions import (
    Names,
    aggregate,
    condition,
    is_groupable,
    require_comparable,
    value,
)
from backend.jobs.spark_types import NoForm, spark_type
from dataflow.expressions.expression import Column, Expression, columns_of, parameters_of
from dataflow.expressions.rewriting import composed, moved
from dataflow.functions import call, is_deterministic
from dataflow.plan.join_shape import conjuncts
from dataflow.plan.node import Aggregate, Base, Join, LeftJoin, Node, SemiJoin, TopK, Union, expressions_of
from dataflow.values.types import SqlType


@dataclass(frozen=True, slots=True)
class JobRelation:
    """Columns of the rows of a table that pass a filter, known to the statement as `name`."""

    name: str
    base: Base
    columns: tuple[int, ...]
    filter: Expression | None

    @property
    def node(self) -> Join:
        """What a shard is asked for."""
        outputs = tuple(Column(each, self.base.types[each]) for each in self.columns)
        return Join((self.base,), filter=self.filter, outputs=outputs)

    @property
    def schema(self) -> list[tuple[str, str]]:
        return [(f"c{each}", spark_type(self.base.types[each])) for each in self.columns]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    sql: str
    scans: tuple[JobRelation, ...]
    types: tuple[SqlType, ...]


def spark_query(node: Node) -> SparkQuery:
    """Raises `NoForm`."""
    writer = _Writer()
    relation = writer.relation(node, range(len(node.types)))
    outputs = ", ".join(f"CAST(c{place} AS {spark_type(kind)}) AS c{place}" for place, kind in enumerate(node.types))
    return SparkQuery(f"SELECT {outputs} FROM {relation}", tuple(writer.scans), node.types)


class _Writer:
    def __init__(self) -> None:
        self.scans: list[JobRelation] = []

    def relation(self, node: Node, wanted: Iterable[int]) -> str:
        """What can stand behind FROM and has at least these columns."""
        read = sorted(set(wanted))
        if any(parameters_of(each) or not is_deterministic(each) for each in expressions_of(node)):
            raise NoForm("values that are not known, or differ from row to row")
        match node:
            case Base():
                return self._scan(node, read, ())
            case Join():
                return self._join(node, read)
            case LeftJoin():
                return self._left_join(node, read)
            case SemiJoin():
                return self._semi_join(node, read)
            case Aggregate():
                return self._aggregate(node, read)
            case Union():
                return self._union(node, read)
            case TopK():
                raise NoForm("first rows of an order")

    def _scan(self, base: Base, read: Sequence[int], filters: Sequence[Expression]) -> str:
        for each in read:
            spark_type(base.types[each])
        joined = None if not filters else filters[0] if len(filters) == 1 else call("and", *filters)
        columns = tuple(read) or (base.primary_key or (0,))[:1]
        self.scans.append(JobRelation(f"scan{len(self.scans)}", base, columns, joined))
        return self.scans[-1].name

    def _join(self, node: Join, read: Sequence[int]) -> str:
        types = node.input_types
        starts = [sum(len(each.types) for each in node.inputs[:number]) for number in range(len(node.inputs))]
        ends = [start + len(each.types) for start, each in zip(starts, node.inputs)]
        outputs = [node.outputs[each] if node.outputs is not None else Column(each, types[each]) for each in read]
        own: list[list[Expression]] = [[] for _ in node.inputs]
        inputs = list(node.inputs)
        left: list[Expression] = []
        for each in conjuncts(node.filter):
            number = _only_input(each, starts, ends)
            if number is None:
                left.append(each)
                continue
            test = _moved_down(each, starts[number])
            if isinstance(inputs[number], Base):
                own[number].append(test)
            elif (pushed := _pushed(inputs[number], test)) is not None:
                inputs[number] = pushed
            else:
                left.append(each)
        used = {place for each in (*outputs, *left) for place in columns_of(each)} | {place for pair in node.equalities for place in pair}

        def name(place: int) -> str:
            number = next(number for number, end in enumerate(ends) if place < end)
            return f"i{number}.c{place - starts[number]}"

        relations = []
        for number, source in enumerate(inputs):
            places = sorted(place - starts[number] for place in used if starts[number] <= place < ends[number])
            relation = self._scan(source, places, own[number]) if isinstance(source, Base) else self.relation(source, places)
            relations.append(f"{relation} AS i{number}")
        tests = [_equality(name(a), name(b), types[a], types[b]) for a, b in node.equalities]
        tests += [condition(each, name) for each in left]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"({_select(read, outputs, name)} FROM {' CROSS JOIN '.join(relations)}{where})"

    def _sides(
        self, node: LeftJoin | SemiJoin, used: frozenset[int], wanted: Iterable[int]
    ) -> tuple[str, str, str, Names]:
        """Both inputs, the condition that joins them, and what columns are called; `used` and `wanted` are places of the concatenated row."""
        width = len(node.left.types)
        every = used | set(wanted)
        left = {each for each in every if each < width} | {a for a, _ in node.equalities}
        right = {each - width for each in every if each >= width} | {b for _, b in node.equalities}

        def name(place: int) -> str:
            return f"i0.c{place}" if place < width else f"i1.c{place - width}"

        tests = [_equality(f"i0.c{a}", f"i1.c{b}", node.left.types[a], node.right.types[b]) for a, b in node.equalities]
        if node.filter is not None:
            tests.append(condition(node.filter, name))
        return self.relation(node.left, left), self.relation(node.right, right), " AND ".join(tests) or "TRUE", name

    def _left_join(self, node: LeftJoin, read: Sequence[int]) -> str:
        both = node.left.types + node.right.types
        outputs = [node.outputs[each] if node.outputs is not None else Column(each, both[each]) for each in read]
        used = columns_of(node.filter) if node.filter is not None else frozenset()
        left, right, on, name = self._sides(node, used, {place for each in outputs for place in columns_of(each)})
        return f"({_select(read, outputs, name)} FROM {left} AS i0 LEFT JOIN {right} AS i1 ON {on})"

    def _semi_join(self, node: SemiJoin, read: Sequence[int]) -> str:
        used = columns_of(node.filter) if node.filter is not None else frozenset()
        left, right, on, name = self._sides(node, used, read)
        outputs = [Column(each, node.types[each]) for each in read]
        return f"({_select(read, outputs, name)} FROM {left} AS i0 LEFT {'ANTI' if node.negated else 'SEMI'} JOIN {right} AS i1 ON {on})"

    def _aggregate(self, node: Aggregate, read: Sequence[int]) -> str:
        if not node.group and not node.functions:
            raise NoForm("one row of nothing")
        for each in node.group:
            if not is_groupable(node.input.types[each]):
                raise NoForm(f"groups of type {node.input.types[each].kind.value}")
        width = len(node.group)
        functions = {place: node.functions[place - width] for place in read if place >= width}
        used = {place for each in functions.values() for argument in each.arguments for place in columns_of(argument)} | set(node.group)
        items = [f"c{node.group[place]} AS c{place}" for place in read if place < width]
        items += [f"{aggregate(each, _own_column)} AS c{place}" for place, each in functions.items()]
        by = f" GROUP BY {', '.join(f'c{each}' for each in node.group)}" if node.group else ""
        return f"(SELECT {', '.join(items) or 'COUNT(*) AS nothing'} FROM {self.relation(node.input, used)}{by})"

    def _union(self, node: Union, read: Sequence[int]) -> str:
        for each in node.inputs:
            if [spark_type(kind) for kind in each.types] != [spark_type(kind) for kind in node.types]:
                raise NoForm("a union of different types")
        names = ", ".join(f"c{each}" for each in read) or "1 AS nothing"
        return f"({' UNION ALL '.join(f'SELECT {names} FROM {self.relation(each, read)}' for each in node.inputs)})"


def _only_input(expression: Expression, starts: Sequence[int], ends: Sequence[int]) -> int | None:
    """The input that all columns of an expression are of."""
    columns = columns_of(expression)
    for number, (start, end) in enumerate(zip(starts, ends)):
        if columns and all(start <= each < end for each in columns):
            return number
    return None


def _moved_down(expression: Expression, start: int) -> Expression:
    return moved(expression, {place: place - start for place in columns_of(expression)})


def _pushed(node: Node, test: Expression) -> Node | None:
    """The node with only those rows that pass a test of one of its tables; None if it is about more than that."""
    match node:
        case Base():
            return Join((node,), filter=test)
        case Join():
            test = composed(test, node.outputs)
            starts = [sum(len(each.types) for each in node.inputs[:number]) for number in range(len(node.inputs))]
            number = _only_input(test, starts, [start + len(each.types) for start, each in zip(starts, node.inputs)])
            if number is not None and isinstance(node.inputs[number], Base):  # not below its own filter, which would come after
                return replace(node, filter=test if node.filter is None else call("and", node.filter, test))
            found = None if number is None else _pushed(node.inputs[number], _moved_down(test, starts[number]))
            if number is None or found is None:
                return None
            return replace(node, inputs=(*node.inputs[:number], found, *node.inputs[number + 1 :]))
        case SemiJoin() | LeftJoin():
            test = composed(test, node.outputs) if isinstance(node, LeftJoin) else test
            left = _pushed(node.left, test) if _only_input(test, [0], [len(node.left.types)]) == 0 else None
            return None if left is None else replace(node, left=left)
    return None


def _own_column(place: int) -> str:
    return f"c{place}"


def _equality(left: str, right: str, left_type: SqlType, right_type: SqlType) -> str:
    require_comparable(left_type, right_type)
    return f"{left} = {right}"


def _select(read: Sequence[int], outputs: Sequence[Expression], name: Names) -> str:
    items = [f"{value(each, name)} AS c{place}" for place, each in zip(read, outputs)]
    return f"SELECT {', '.join(items) or '1 AS nothing'}"
