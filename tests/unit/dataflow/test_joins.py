"""Joins of many inputs: no intermediate results, and no bad join order."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from dataflow.errors import Unsupported
from dataflow.expressions.expression import Column
from dataflow.expressions.source import key_function
from dataflow.plan.node import Base, Columns, Join, Node
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Hit
from dataflow.values.types import DATE, INT, Row, text

EDGE = Base(1, (INT, INT), (0, 1), "edges")


class Tables:
    """Base tables with an index for whatever is looked up."""

    def __init__(self, bases: Iterable[Base]) -> None:
        self.bases = {base.table: base for base in bases}
        self.rows: dict[int, list[Row]] = {base.table: [] for base in bases}
        self.indexes: dict[tuple[int, Columns], dict[object, list[Row]]] = {}

    def add(self, table: int, rows: Sequence[Row]) -> list[tuple[Row, int]]:
        self.rows[table].extend(rows)
        self.indexes.clear()
        return [(row, 1) for row in rows]

    def lookup(self, table: int, columns: Columns, keys: Sequence[object]) -> list[Iterable[Row]]:
        index = self.indexes.get((table, columns))
        if index is None:
            index = self.indexes[table, columns] = {}
            key_of = key_function(columns, self.bases[table].types)
            for row in self.rows[table]:
                index.setdefault(key_of(row), []).append(row)
        return [index.get(key, []) for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self.rows[table]

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


def triangle(order: Sequence[int]) -> Join:
    """(a, b), (b, c), (a, c) with the three edges in the given order."""
    names = ["ab", "bc", "ac"]
    place = {names[number]: position for position, number in enumerate(order)}

    def at(edge: str, node: str) -> int:
        return 2 * place[edge] + edge.index(node)

    equalities = ((at("ab", "b"), at("bc", "b")), (at("bc", "c"), at("ac", "c")), (at("ab", "a"), at("ac", "a")))
    outputs = (at("ab", "a"), at("ab", "b"), at("bc", "c"))
    return Join((EDGE,) * 3, equalities, None, tuple(Column(each, INT) for each in outputs))


def triangles(edges: Iterable[Row]) -> Counter[Row]:
    known = set(edges)
    followers: dict[object, list[object]] = {}
    for a, b in known:
        followers.setdefault(a, []).append(b)
    return Counter((a, b, c) for a, b in known for c in followers.get(b, ()) if (a, c) in known)


def held_rows(engine: Engine) -> dict[str, int]:
    """How many rows each operator holds in its arrangements."""
    return {
        operator.label: sum(len(each.bag(value)) for each in operator.arrangements() for value in each.index.values())
        for operator in engine.graph.operators.values()
    }


def test_triangle_holds_edges_and_results_and_nothing_between() -> None:
    draw = random.Random(1)
    edges = list({(draw.randrange(60), draw.randrange(60)) for _ in range(900)})
    tables = Tables([EDGE])
    engine = Engine(tables)
    view = engine.add_view(triangle((0, 1, 2)), ())
    for start in range(0, len(edges), 50):
        engine.apply(start + 1, {1: tables.add(1, edges[start : start + 50])})
    found = engine.lookup(view, [()])[0]
    assert isinstance(found, Hit)
    assert Counter(found.rows) == triangles(edges)
    held = held_rows(engine)
    assert sum(held.values()) - len(found.rows) <= 3 * len(edges), "each edge is held once for each index, by either end and both"
    assert len(engine.graph.operators) == 2


def cost_of(order: Sequence[int], edges: Sequence[Row]) -> float:
    tables = Tables([EDGE])
    engine = Engine(tables)
    engine.add_view(triangle(order), ())
    deltas = [tables.add(1, edges[start : start + 200]) for start in range(0, len(edges), 200)]
    start = time.process_time()
    for epoch, delta in enumerate(deltas, 1):
        engine.apply(epoch, {1: delta})
    return time.process_time() - start


def test_worst_order_of_a_skewed_triangle_costs_at_most_twice_the_best() -> None:
    """One node is joined to all others in both directions: following it first is what a bad order does."""
    draw = random.Random(2)
    hub = [(0, n) for n in range(1, 1500)] + [(n, 0) for n in range(1, 1500)]
    edges = list({*hub, *((draw.randrange(1, 1500), draw.randrange(1, 1500)) for _ in range(3000))})
    draw.shuffle(edges)
    costs = [min(cost_of(order, edges) for _ in range(3)) for order in itertools.permutations(range(3))]
    assert max(costs) <= 2 * min(costs), costs


def test_seven_way_star_join_holds_no_intermediate_rows() -> None:
    hub = Base(1, (INT,) * 7, (0,), "hub")
    points = [Base(2 + n, (INT, INT), (0,), f"point {n}") for n in range(6)]
    node: Node = Join(
        (hub, *points),
        tuple((1 + n, 7 + 2 * n) for n in range(6)),
        None,
        (Column(0, INT), *(Column(8 + 2 * n, INT) for n in range(6))),
    )
    tables = Tables([hub, *points])
    engine = Engine(tables)
    view = engine.add_view(node, (0,))
    epoch = itertools.count(1)
    for base in points:
        engine.apply(next(epoch), {base.table: tables.add(base.table, [(n, 100 + n) for n in range(20)])})
    engine.apply(next(epoch), {1: tables.add(1, [(n, *((n + i) % 20 for i in range(6))) for n in range(50)])})
    found = engine.upquery(view, [(3,), (49,)])
    assert found == [
        Hit(((3, 103, 104, 105, 106, 107, 108),)),
        Hit(((49, 109, 110, 111, 112, 113, 114),)),
    ]
    moved = [((3, *((3 + i) % 20 for i in range(6))), -1), ((3, 1, 1, 1, 1, 1, 1), 1)]
    tables.rows[1].remove(moved[0][0])
    tables.rows[1].append(moved[1][0])
    tables.indexes.clear()
    engine.apply(next(epoch), {1: moved})
    assert engine.lookup(view, [(3,)]) == [Hit(((3, 101, 101, 101, 101, 101, 101),))]
    held = held_rows(engine)
    assert [label for label in held if not label.startswith("Base")] == [view.operator.label]
    assert held[view.operator.label] == 2


def test_equality_of_types_that_compare_by_conversion_is_refused_when_planned() -> None:
    other = Base(2, (INT, DATE, text(10)), (0,), "other")
    with pytest.raises(Unsupported):
        Engine(Tables([EDGE, other])).add_view(Join((EDGE, other), ((0, 4),)), (0,))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_key_that_several_inputs_have_is_looked_up_in_the_one_of_the_fewest_tables(order: tuple[int, int]) -> None:
    """Followers are few, and what was posted to somebody takes two tables to tell: nobody computes it for who follows nothing."""
    follower, post, thread = Base(1, (INT, INT), (0, 1), "followers"), Base(2, (INT, INT), (0,), "posts"), Base(3, (INT, INT), (0,), "threads")
    addressed = Join((post, thread), ((1, 2),), None, (Column(3, INT), Column(0, INT)))
    inputs = (follower, addressed)
    node = Join((inputs[order[0]], inputs[order[1]]), ((0, 2),), None, tuple(Column(each, INT) for each in range(4)))
    tables = Tables((follower, post, thread))
    engine = Engine(tables)
    view = engine.add_view(node, (0,))
    engine.apply(1, {1: tables.add(1, [(7, 1)]), 2: tables.add(2, [(each, each % 5) for each in range(500)]), 3: tables.add(3, [(each, each) for each in range(5)])})
    read = 0

    def spend(rows: int) -> None:
        nonlocal read
        read += rows

    with engine.spending(spend):
        assert [set(hit.rows) for hit in engine.upquery(view, [(3,)])] == [set()]
    assert read == 0
    engine.apply(2, {1: tables.add(1, [(3, 1)])})
    wanted = {(3, 1, 3, post) if order == (0, 1) else (3, post, 3, 1) for post in range(500) if post % 5 == 3}
    assert [set(hit.rows) for hit in engine.upquery(view, [(3,)])] == [wanted]
