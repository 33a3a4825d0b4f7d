"""Keys of every type are found by what stands for them, and refused with a word if they stand for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.client import AsyncDatabase
from dataflow.errors import InvalidStatement
from tests.unit.backend.client.test_embedded import raises, shop

TABLE = """
CREATE TABLE kinds (id INT PRIMARY KEY, n INT, u BIGINT UNSIGNED, r DOUBLE, d DECIMAL(10, 2), t VARCHAR(9), b VARBINARY(9),
    day DATE, at DATETIME(3), clock TIME, e ENUM('x', 'y'), more DECIMAL(10, 2), KEY (d), KEY (more DESC))
"""
ROW = {
    "n": 1, "u": (1 << 64) - 1, "r": 0.1, "d": Decimal("1.10"), "t": "Ä", "b": b"\0\xff", "day": date(2024, 2, 29),
    "at": datetime(2024, 2, 29, 1, 2, 3, 500000), "clock": -timedelta(hours=3), "e": "x",
    "more": Decimal("1.10"),
}  # fmt: skip
FOUND: dict[str, Sequence[Any]] = {
    "n": (1, 1.0, True, "1", Decimal("1.0"), np.int8(1)),
    "u": ((1 << 64) - 1, np.uint64((1 << 64) - 1), str((1 << 64) - 1)),
    "r": (0.1, Decimal("0.1"), "0.1", np.float64(0.1), Decimal("0.10000000000000000001")),
    "d": (Decimal("1.1"), 1.1, "1.10"),
    "t": ("Ä", "ä", np.str_("Ä")),
    "b": (b"\0\xff", bytearray(b"\0\xff"), memoryview(b"\0\xff")),
    "day": (date(2024, 2, 29), datetime(2024, 2, 29), "2024-02-29", np.datetime64("2024-02-29")),
    "at": (ROW["at"], "2024-02-29T01:02:03.5", "2024-02-29 01:02:03.500", np.datetime64("2024-02-29T01:02:03.5")),
    "clock": (-timedelta(hours=3), "-03:00:00", np.timedelta64(-3, "h")),
    "e": ("x", "X"),
    "more": (Decimal("1.1"),),
}
ABSENT: dict[str, Sequence[Any]] = {
    "n": (2, 1.5, "1.5", 1 << 70, None, float("nan")),
    "u": (-1, 0, 1 << 64),
    "d": (1.105, Decimal("1.105"), Decimal("1e20"), -(10**20), 10**8, float("inf")),
    "more": (Decimal("1.105"), Decimal("1e20"), Decimal("-1e20")),
    "t": ("b", None),
    "day": (datetime(2024, 2, 29, 1), "2024-03-01", None),
    "clock": (time(3), None),
}
REFUSED: dict[str, Sequence[Any]] = {
    "n": ("x", b"1", date(2024, 1, 1)),
    "d": ("", timedelta(1)),
    "t": (1, b"x"),
    "b": (1,),
    "day": (20240229, "no date", 1.5),
    "at": (5, "2024-02-30"),
    "clock": (5, "x"),
    "e": (1,),
}


def test_keys_are_found_by_whatever_stands_for_them(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(TABLE)
        await db.table("kinds").insert(ROW, id=7)
        for column in ROW:
            view = await db.view("kinds", key=[column])
            for key in FOUND[column]:
                assert [row[0] for row in await view.lookup(key)] == [7], (column, key)
            assert [rows[0][0] for rows in await view.lookup_many(FOUND[column])] == [7] * len(FOUND[column])
            for key in ABSENT.get(column, ()):
                assert await view.lookup(key) == [], (column, key)
            for key in REFUSED.get(column, ()):
                assert "is no key of a" in await raises(ValueError, view.lookup(key)), (column, key)
            await raises(TypeError, view.lookup(object()))

    shop(tmp_path, work)


def test_bounds_may_be_texts_of_dates(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(TABLE)
        await db.table("kinds").insert_many([{"id": n, "day": date(2024, 1, n), "clock": timedelta(hours=n)} for n in range(1, 6)])
        days = await db.view("SELECT id FROM kinds ORDER BY day")
        assert await days.range(low="2024-01-02", high=date(2024, 1, 4)) == [(2,), (3,)]
        clocks = await db.view("SELECT id FROM kinds ORDER BY clock")
        assert await clocks.range(low="04:00:00") == [(4,), (5,)]
        for wrong in ("no date", 5):
            await raises(ValueError, days.range(low=wrong))
        with pytest.raises(ValueError, match="inclusive"):
            await days.range(inclusive="all")  # type: ignore[arg-type]

    shop(tmp_path, work)


def test_a_named_view_is_looked_up_by_what_tells_its_rows_apart(tmp_path: Path) -> None:
    views = {
        "SELECT COUNT(*) AS n, b, a FROM pairs GROUP BY a, b": ((2, 1), [(1, 2, 1)]),
        "SELECT c, a, b FROM pairs WHERE c > 0": ((1, 2), [(3, 1, 2)]),
        "SELECT b.name, a.c, a.b, a.a FROM pairs a JOIN names b ON b.id = a.b": ((2, 1), [("two", 3, 2, 1)]),
        "SELECT n.id, n.name, COUNT(p.a) AS n FROM names n LEFT JOIN pairs p ON p.b = n.id GROUP BY n.id": (3, [(3, "three", 0)]),
        "SELECT name, id FROM names WHERE id IN (SELECT b FROM pairs) ORDER BY name LIMIT 3": (2, [("two", 2)]),
        "SELECT n.name, p.* FROM pairs p LEFT JOIN names n ON n.id = p.b": ((2, 2), [("two", 2, 2, 5)]),
        "SELECT n.id, p.a FROM pairs p JOIN names n ON n.id = p.b": ((2, 1), [(2, 1)]),
        "SELECT DISTINCT b FROM pairs": (2, [(2,)]),
        "SELECT SUM(c) FROM pairs": ((), [(8,)]),
    }

    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(
            "CREATE TABLE pairs (a INT, b INT, c INT, PRIMARY KEY (a, b)); CREATE TABLE names (id INT PRIMARY KEY, name TEXT);"
            + ";".join(f"CREATE VIEW v{number} AS {select}" for number, select in enumerate(views))
        )
        await db.table("pairs").insert_many([{"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 2, "c": 5}])
        await db.table("names").insert_many([{"id": 2, "name": "two"}, {"id": 3, "name": "three"}])
        for number, (key, rows) in enumerate(views.values()):
            assert sorted(await (await db.view(f"v{number}")).lookup(key)) == rows, number

    shop(tmp_path, work)


def test_mistakes_are_named(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(f"{TABLE}; CREATE TABLE pairs (a INT, b INT, c INT, PRIMARY KEY (a, b)); CREATE VIEW counted AS SELECT a, COUNT(*) FROM pairs GROUP BY a")
        pairs = db.table("pairs")
        await pairs.insert(a=1, b=2, c=3)
        assert "2 column(s), the key has 1" in await raises(ValueError, pairs.update(1, c=4))
        assert "2 column(s), the key has 3" in await raises(ValueError, pairs.delete((1, 2, 3)))
        await raises(ValueError, pairs.update((1, 2)))
        assert "object" in await raises(TypeError, pairs.update((1, 2), c=object()))
        assert "list" in await raises(TypeError, pairs.insert(a=[1], b=2))
        view = await db.view("pairs")
        assert "a, b, c" in await raises(ValueError, view.lookup_columns([(1, 2)], ["nothing"]))
        await db.extend_program("CREATE VIEW sums AS SELECT SUM(c) FROM pairs GROUP BY a")
        assert "sums is a view" in await raises(InvalidStatement, db.view("sums"))
        await db.extend_program("CREATE VIEW both_ways AS SELECT x.a, x.b, y.c FROM pairs x JOIN pairs y ON y.b = x.b")
        assert "both_ways is a view" in await raises(InvalidStatement, db.view("both_ways"))
        assert await (await db.view("SELECT\nc\nFROM\npairs\nWHERE\na=?")).lookup(1) == [(3,)]
        async with db.transaction() as transaction:
            await pairs.insert(a=2, b=2, c=3)
        assert "ended" in await raises(InvalidStatement, transaction.table("pairs").insert(a=3, b=3))
        assert "ended" in await raises(InvalidStatement, transaction.table("pairs").insert_many([{"a": 3, "b": 3}]))
        assert "ended" in await raises(InvalidStatement, transaction.execute("SELECT c FROM pairs"))

    shop(tmp_path, work)


def test_joined_decimals_are_equal_to_the_last_digit(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(f"{TABLE}; CREATE TABLE finer (id INT PRIMARY KEY, d DECIMAL(30, 3))")
        await db.table("kinds").insert_many([{"id": 1, "d": "1.10", "more": "1.10"}, {"id": 2, "d": "99999999.99", "more": None}])
        await db.table("finer").insert_columns({"id": [1, 2, 3], "d": [Decimal("1.100"), Decimal("1.105"), Decimal("1e20")]})
        for column in ("d", "more"):
            view = await db.view(f"SELECT kinds.id FROM finer JOIN kinds ON kinds.{column} = finer.d WHERE finer.id = ?")
            assert await view.lookup_many([1, 2, 3]) == [[(1,)], [], []]

    shop(tmp_path, work)
