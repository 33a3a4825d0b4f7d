"""Random tables, plans and histories for the dataflow, small enough that keys collide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.expressions.source import key_function
from dataflow.functions import call
from dataflow.plan.node import (
    Aggregate,
    AggregateFunction,
    Base,
    Columns,
    Join,
    LeftJoin,
    Node,
    Order,
    SemiJoin,
    TopK,
    Union,
    distinct,
)
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, INT, Kind, Row, SqlType, decimal, text

TEXT = text(20, "utf8mb4_general_ci")
BASES = {
    1: Base(1, (INT, INT, INT), (0,), "a"),
    2: Base(2, (INT, INT, TEXT), (0,), "b"),
    3: Base(3, (INT, TEXT, INT), (0, 2), "c"),
}


class MemorySource:
    """Base tables in memory; lookups scan."""

    def __init__(self) -> None:
        self.tables: dict[int, Counter[Row]] = {table: Counter() for table in BASES}

    def lookup(self, table: int, columns: Columns, keys: Sequence[object]) -> list[Iterable[Row]]:
        key_of = key_function(columns, BASES[table].types)
        return [[row for row in self.tables[table] if key_of(row) == key] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return list(self.tables[table])

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return (table, columns) != (2, (2,))


def values(kind: SqlType) -> st.SearchStrategy[object]:
    if kind.kind is Kind.VARCHAR:
        return st.sampled_from([None, "x", "X", "y", "Z"])
    return st.sampled_from([None, 0, 1, 2, 3])


def rows(base: Base) -> st.SearchStrategy[Row]:
    return st.tuples(
        *(values(kind) if c not in base.primary_key else st.sampled_from([0, 1, 2, 3]) for c, kind in enumerate(base.types))
    )


def kinds(node: Node, *, is_text: bool) -> list[int]:
    return [c for c, kind in enumerate(node.types) if (kind.kind is Kind.VARCHAR) == is_text]


def is_plain(node: Node, column: int) -> bool:
    return node.types[column].kind in (Kind.INT, Kind.VARCHAR, Kind.BIGINT)


@st.composite
def equalities(draw: st.DrawFn, left: Sequence[SqlType], right: Sequence[SqlType], most: int) -> tuple[tuple[int, int], ...]:
    pairs = [
        (a, b)
        for a, one in enumerate(left)
        for b, other in enumerate(right)
        if (one.kind is Kind.VARCHAR) == (other.kind is Kind.VARCHAR)
        and one.kind in (Kind.INT, Kind.VARCHAR, Kind.BIGINT)
        and other.kind in (Kind.INT, Kind.VARCHAR, Kind.BIGINT)
        and (not one.unsigned and not other.unsigned)
    ]
    if not pairs:
        return ()
    return tuple(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=most, unique=True)))


def numeric(types: Sequence[SqlType]) -> list[int]:
    return [c for c, kind in enumerate(types) if kind.kind in (Kind.INT, Kind.BIGINT) and not kind.unsigned]


@st.composite
def conditions(draw: st.DrawFn, types: Sequence[SqlType]) -> Expression | None:
    candidates = numeric(types)
    if not candidates or draw(st.integers(0, 2)):
        return None

    def one() -> Expression:
        column = draw(st.sampled_from(candidates))
        other: Expression
        if draw(st.booleans()):
            other = Literal(draw(st.sampled_from([1, 2])), INT)
        else:
            second = draw(st.sampled_from(candidates))
            other = Column(second, types[second])
        return call(draw(st.sampled_from(["=", "<"])), Column(column, types[column]), other)

    return call("and", one(), one()) if draw(st.booleans()) else one()


@st.composite
def outputs(draw: st.DrawFn, types: Sequence[SqlType], computed: bool = True) -> tuple[Expression, ...] | None:
    if draw(st.booleans()) and len(types) <= 6:
        return None
    columns = draw(st.lists(st.integers(0, len(types) - 1), min_size=1, max_size=4))
    result: list[Expression] = [Column(c, types[c]) for c in columns]
    numbers = numeric(types)
    if computed and numbers and draw(st.integers(0, 3)) == 0:
        c = draw(st.sampled_from(numbers))
        result.append(call("+", Column(c, types[c]), Literal(1, INT)))
    return tuple(result)


@st.composite
def functions(draw: st.DrawFn, types: Sequence[SqlType], sqlite: bool) -> AggregateFunction:
    numbers = numeric(types)
    texts = [c for c, kind in enumerate(types) if kind.kind is Kind.VARCHAR]
    names = ["count_star"]
    if numbers:
        names += ["count", "count_distinct", "min", "max", "sum", "sum_distinct"]
        names += [] if sqlite else ["avg", "avg_double", "bit_and", "bit_or", "bit_xor", "var_pop"]
    if texts and not sqlite:
        names += ["min_text", "max_text", "count_distinct_text", "group_concat", "group_concat_distinct"]
    name = draw(st.sampled_from(names))
    if name == "count_star":
        return AggregateFunction(name, (), BIGINT)
    if "text" in name or "concat" in name:
        c = draw(st.sampled_from(texts))
        argument: tuple[Expression, ...] = (Column(c, types[c]),)
        if name.startswith("group_concat"):
            o = draw(st.integers(0, len(types) - 1))
            order = (Order(Column(o, types[o]), draw(st.booleans())),) if draw(st.booleans()) else ()
            return AggregateFunction("group_concat", argument, TEXT, name.endswith("distinct"), order, "|", 12)
        if name == "count_distinct_text":
            return AggregateFunction("count", argument, BIGINT, True)
        return AggregateFunction(name[:3], argument, types[c])
    c = draw(st.sampled_from(numbers))
    argument = (Column(c, types[c]),)
    match name:
        case "count" | "count_distinct":
            return AggregateFunction("count", argument, BIGINT, name == "count_distinct")
        case "min" | "max":
            return AggregateFunction(name, argument, types[c])
        case "sum" | "sum_distinct":
            return AggregateFunction("sum", argument, decimal(32, 0), name == "sum_distinct")
        case "avg":
            return AggregateFunction("avg", argument, decimal(14, 4))
        case "avg_double":
            return AggregateFunction("avg", argument, DOUBLE)
        case "var_pop":
            return AggregateFunction("var_pop", argument, DOUBLE)
        case _:
            return AggregateFunction(name, argument, BIGINT_UNSIGNED)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 3, sqlite: bool = False) -> Node:
    """A plan; with `sqlite`, one that SQLite computes in the same types."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return BASES[draw(st.sampled_from([1, 2, 3]))]

    def inner() -> Node:
        return draw(nodes(depth=depth - 1, sqlite=sqlite))

    kind = draw(st.sampled_from(["join", "join", "filter", "left", "semi", "aggregate", "aggregate", "distinct", "topk", "union"]))
    match kind:
        case "filter":
            source = inner()
            return Join((source,), (), draw(conditions(source.types)), draw(outputs(source.types)))
        case "join":
            inputs = [inner() for _ in range(draw(st.sampled_from([2, 2, 3])))]
            if draw(st.integers(0, 3)) == 0:
                inputs[-1] = inputs[0]
            types: list[SqlType] = list(inputs[0].types)
            pairs: list[tuple[int, int]] = []
            for each in inputs[1:]:
                found = draw(equalities(types, each.types, 2))
                pairs += [(a, len(types) + b) for a, b in found]
                types += each.types
            return Join(tuple(inputs), tuple(pairs), draw(conditions(types)), draw(outputs(types)))
        case "left" | "semi":
            left, right = inner(), inner()
            both = left.types + right.types
            pairs2 = draw(equalities(left.types, right.types, 2))
            condition = draw(conditions(both))
            if kind == "semi":
                return SemiJoin(left, right, pairs2, condition, draw(st.booleans()))
            return LeftJoin(left, right, pairs2, condition, draw(outputs(both)))
        case "aggregate":
            source = inner()
            columns = [c for c in range(len(source.types)) if is_plain(source, c)]
            group = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True)) if columns else []
            made = draw(st.lists(functions(source.types, sqlite), min_size=0 if group else 1, max_size=2))
            return Aggregate(source, tuple(group), tuple(made))
        case "distinct":
            return distinct(inner())
        case "topk":
            source = inner()
            partition = draw(st.lists(st.integers(0, len(source.types) - 1), max_size=2, unique=True))
            order = draw(st.lists(st.integers(0, len(source.types) - 1), min_size=1, max_size=2, unique=True))
            items = tuple(Order(Column(c, source.types[c]), draw(st.booleans())) for c in order)
            return TopK(source, tuple(sorted(partition)), items, draw(st.integers(1, 3)), draw(st.integers(0, 1)))
        case _:
            base = inner()
            other = Join((base,), (), draw(conditions(base.types)), None)
            return Union((base, other))


@dataclass(frozen=True)
class Write:
    """One epoch: for each (table, row), the row is put in place of the one with its primary key, or removed."""

    puts: tuple[tuple[int, Row], ...]
    removes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Read:
    view: int
    key: tuple[object, ...]


@dataclass(frozen=True)
class Evict:
    view: int
    which: int


@dataclass(frozen=True)
class EvictInternal:
    which: int


@dataclass(frozen=True)
class MakeRoom:
    """Memory for so many percent of what is held."""

    percent: int


@dataclass(frozen=True)
class AddView:
    node: Node
    key: Columns


@dataclass(frozen=True)
class RemoveView:
    view: int


@dataclass(frozen=True)
class OpenHandle:
    view: int


@dataclass(frozen=True)
class CloseHandle:
    which: int


Action = OpenHandle | CloseHandle | Write | Read | Evict | EvictInternal | MakeRoom | AddView | RemoveView


@st.composite
def views(draw: st.DrawFn, sqlite: bool = False) -> AddView:
    node = draw(nodes(sqlite=sqlite))
    key = draw(st.lists(st.integers(0, len(node.types) - 1), max_size=2, unique=True))
    return AddView(node, tuple(key))


@st.composite
def writes(draw: st.DrawFn) -> Write:
    puts = draw(st.lists(st.sampled_from([1, 2, 3]).flatmap(lambda t: st.tuples(st.just(t), rows(BASES[t]))), max_size=4))
    removes = draw(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(0, 5)), max_size=2))
    return Write(tuple(puts), tuple(removes))


@st.composite
def reads(draw: st.DrawFn) -> Read:
    return Read(draw(st.integers(0, 3)), tuple(draw(st.lists(st.sampled_from([None, 0, 1, 2, 3, "x", "Y"]), min_size=2, max_size=2))))


@st.composite
def histories(draw: st.DrawFn, sqlite: bool = False) -> list[Action]:
    first = draw(st.lists(views(sqlite), min_size=1, max_size=2))
    rest = draw(
        st.lists(
            st.one_of(
                writes(), writes(), reads(), reads(), reads(),
                st.builds(Evict, st.integers(0, 3), st.integers(0, 9)),
                st.builds(EvictInternal, st.integers(0, 99)),
                st.builds(MakeRoom, st.integers(0, 99)),
                views(sqlite), st.builds(RemoveView, st.integers(0, 3)),
                st.builds(OpenHandle, st.integers(0, 3)), st.builds(CloseHandle, st.integers(0, 3)),
            ),
            max_size=14,
        )
    )  # fmt: skip
    return [draw(writes()), *first, *rest]
