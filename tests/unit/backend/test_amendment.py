"""Entries with other numbers in them are what they would be if they were made anew."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from backend.execution.outcome import ResultSet
from backend.shared_memory.amendment import amender
from backend.shared_memory.entry import EntryLayout, entry_extent
from backend.shared_memory.segment import LENGTH_BITS, LENGTH_MASK, SegmentNames
from backend.shared_memory.writer import SharedViewWriter
from backend.views.view_definition import ViewDefinition
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.functions import call
from dataflow.plan.node import Aggregate, AggregateFunction, Base, Join, LeftJoin, Node
from dataflow.values.types import BIGINT, DOUBLE, INT, Kind, Row, SqlType, Value, decimal, text
from tests.unit.backend.shared_view_processes import encode
from tests.unit.backend.test_publication import Shop, shop

EDGES = [each + near for each in (0, 32, 128, 256, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 62) for near in (-2, -1, 0, 1)]
NUMBERS = sorted({*EDGES, *(-each for each in EDGES), 1 - (1 << 63), (1 << 63) - 1})
TEXTS = ["", "a", "é" * 20, "x" * 31, "x" * 32, "y" * 300, "z" * 70_000]
UNSIGNED = SqlType(Kind.BIGINT, unsigned=True)
UNSIGNED_NUMBERS = [each for each in NUMBERS if each >= 0] + [(1 << 64) - 1 - each for each in EDGES if each >= 0]
LAYOUTS: list[tuple[list[SqlType], set[int]]] = [
    ([INT, text(100), BIGINT], {2}),
    ([BIGINT, BIGINT], {0, 1}),
    ([BIGINT, text(100), INT, text(100), BIGINT, BIGINT, text(9)], {2, 4, 5}),
    ([DOUBLE, text(100), BIGINT, decimal(9, 2), BIGINT], {2, 4}),
    ([INT] * 20, {0, 7, 19}),
    ([INT, UNSIGNED, BIGINT], {2}),
    ([INT, UNSIGNED, UNSIGNED], {1, 2}),
]


def value(kind: SqlType, chance: random.Random) -> Value:
    if chance.random() < 0.05:
        return None
    if kind is DOUBLE:
        return chance.choice([0.0, 1.5, -2.25])
    if kind is UNSIGNED:
        return chance.choice(UNSIGNED_NUMBERS)
    if kind in (INT, BIGINT):
        return chance.choice(NUMBERS)
    return chance.choice([Decimal("1.25"), Decimal("-17.00")] if kind == decimal(9, 2) else TEXTS)


def entry(view: SharedViewWriter, key: int, width: int) -> bytes:
    """The key's bytes in the index that is edited."""
    slots, _ = view.find_many(np.array([key]))
    location = view._segment.pairs[(view._epoch + view._editing) & 1][2 * int(slots[0]) + 1]
    start, size = entry_extent(view._segment.memory, width, location >> LENGTH_BITS << 3, location & LENGTH_MASK)
    return bytes(view._segment.memory[start : start + size])


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_an_amended_entry_has_the_bytes_of_a_new_one(number: int) -> None:
    types, columns = LAYOUTS[number]
    chance, layout = random.Random(number), EntryLayout(types)
    made = amender(layout.codes, frozenset(columns))
    assert made is not None
    names, amended = SegmentNames(f"tests of amendment {os.getpid()}", 0), 0
    views = [SharedViewWriter(names.new(), layout, True) for _ in range(2)]
    try:
        rows = {key: tuple(value(kind, chance) for kind in types) for key in range(300)}
        several = {key for key in rows if chance.random() < 0.05}
        for view in views:
            for key, row in rows.items():
                some = [row, row] if key in several else [row]
                assert view.put(key, some, encode(some))
            view.publish()
        for _ in range(8):
            keys = chance.sample(sorted(rows), 100)
            before = [entry(views[0], key, layout.width) for key in keys]
            changed: dict[int, Row] = {}
            for key in keys:
                # Mostly near to what was there, so that it takes as many bytes.
                row = list(rows[key])
                for column in columns:
                    old = row[column]
                    near = old + chance.choice([1, -1]) if isinstance(old, int) and -(1 << 63) < old < (1 << 63) - 1 else 5
                    new = near if chance.random() < 0.9 else chance.choice(NUMBERS)
                    row[column] = abs(new) if types[column] is UNSIGNED else new
                changed[key] = tuple(row)
            slots, _ = views[0].find_many(np.array(keys))
            values = [np.array([row[column] for row in changed.values()]) for column in sorted(columns)]
            done = views[0].amend_many(slots, made, values)
            for key, was, is_done in zip(keys, before, done.tolist()):
                if is_done:
                    rows[key] = changed[key]
                    assert views[1].put(key, [rows[key]], encode([rows[key]]))
                    assert key not in several and entry(views[0], key, layout.width) == entry(views[1], key, layout.width)
                else:
                    assert entry(views[0], key, layout.width) == was
            amended += int(done.sum())
            for view in views:
                view.publish()
        assert amended > 100
    finally:
        for view in views:
            view.close()
        names.close()


def test_texts_and_what_is_behind_reals_cannot_be_amended() -> None:
    codes = EntryLayout([INT, text(5), DOUBLE, INT]).codes
    assert amender(codes, frozenset({0})) is not None
    for columns in ({1}, {2}, {3}, set[int]()):
        assert amender(codes, frozenset(columns)) is None


ALL = "itsn"
"""What a join has if nothing is chosen of it."""


def outputs(order: str, stories: Base, count: Aggregate) -> tuple[Expression, ...] | None:
    if order == ALL:
        return None
    types = (*stories.types, *count.types)
    made = {"i": Column(0, types[0]), "t": Column(1, types[1]), "n": Column(3, types[3])}
    return tuple(made[each] if each != "c" else call("coalesce", made["n"], Literal(0, BIGINT)) for each in order)


@pytest.mark.parametrize("order", ["itc", "itn", "ntci", "nit", ALL])
@pytest.mark.parametrize("outer", [True, False])
def test_what_is_amended_in_shared_memory_is_what_the_tables_say(tmp_path: Path, order: str, outer: bool) -> None:
    chance, stories = random.Random(4), range(1, 61)
    with shop(tmp_path) as here:
        here.run("CREATE TABLE stories (id INT NOT NULL PRIMARY KEY, title VARCHAR(50))")
        here.run("CREATE TABLE votes (who INT, story INT, KEY (story))")
        here.run("INSERT INTO stories VALUES " + ", ".join(f"({each}, 'story {each}')" for each in stories))
        tables = here.table("stories"), here.table("votes")
        bases = [Base(table.id, tuple(column.type for column in table.columns), ()) for table in tables]
        bases[0] = Base(tables[0].id, bases[0].types, (0,))
        count = Aggregate(bases[1], (1,), (AggregateFunction("count", (Column(0, INT),), BIGINT),))
        shown = outputs(order, bases[0], count)
        node: Node = LeftJoin(bases[0], count, ((0, 0),), None, shown) if outer else Join((bases[0], count), ((0, 2),), None, shown)
        view, keys = ViewDefinition(node, (order.index("i"),), tables), [(each,) for each in stories]
        here.share(view, *keys)
        for number in range(40):
            dice = chance.random()
            if dice < 0.75:
                votes = [(chance.choice(["NULL", "1", "2"]), int(60 * chance.random() ** 2) + 1) for _ in range(60)]
                here.run("INSERT INTO votes VALUES " + ", ".join(f"({who}, {story})" for who, story in votes))
            elif dice < 0.85:
                here.run(f"UPDATE stories SET title = 'again {number}' WHERE id % 3 = {number % 3}")
            elif dice < 0.92:
                here.run(f"DELETE FROM votes WHERE story % 7 = {number % 7}")
            else:
                here.run(f"UPDATE votes SET story = story + 1 WHERE story < 59 AND story % 2 = {number % 2}")
            titles = dict(rows_of(here, "SELECT * FROM stories"))
            voted = rows_of(here, "SELECT who, story FROM votes")
            expected = []
            for story in stories:
                own = [who for who, each in voted if each == story]
                counted = len([who for who in own if who is not None]) if own else None
                cells: dict[str, Value] = {"i": story, "t": titles[story], "n": counted, "c": counted or 0, "s": story if own else None}
                expected.append([tuple(cells[each] for each in order)] if outer or own else [])
            assert here.read(view, *keys) == expected, number
        assert here.host.views[view.name].view.arrangement.amended_columns == {at for at, each in enumerate(order) if each in ("ncs" if outer else "nc")}


def rows_of(here: Shop, sql: str) -> list[tuple[Value, ...]]:
    plan, values = here.plans.plan_text(sql, here.database.catalog, "shop", DEFAULT_SETTINGS)
    found = here.loop.run(here.database.execute(plan, values))
    assert isinstance(found, ResultSet)
    return list(found.rows)
