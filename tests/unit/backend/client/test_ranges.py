"""Ranges of views in the client library, over an engine in the same process."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from backend.client import AsyncDatabase
from dataflow.errors import Unsupported
from tests.unit.backend.client.test_embedded import raises, shop

with_and_without_views = pytest.mark.parametrize("shard_count", [1, 2])


@with_and_without_views
def test_a_range_is_part_of_the_order_of_a_keys_rows(tmp_path: Path, shard_count: int) -> None:
    async def work(db: AsyncDatabase) -> None:
        sales = db.table("sales")
        await sales.insert_many([{"item": "tea", "price": price} for price in (1, 5, 3, 3, None, 9)])
        await sales.insert_many([{"item": "milk", "price": 4}])
        view = await db.view("SELECT id, price FROM sales WHERE item = ? ORDER BY price, id")
        prices = [(5, None), (1, 1), (3, 3), (4, 3), (2, 5), (6, 9)]
        assert await view.range("tea") == prices
        assert await view.range("TEA", low=3) == prices[2:]
        assert await view.range("tea", low=3, high=5) == [(3, 3), (4, 3)]
        assert await view.range("tea", low=3, high=Decimal("5.00"), inclusive="both") == [(3, 3), (4, 3), (2, 5)]
        assert await view.range("tea", low=3, high=5.5, inclusive="neither") == [(2, 5)]
        assert await view.range("tea", low=1, high=3, inclusive="right") == [(3, 3), (4, 3)]
        assert await view.range("tea", high=3) == [(1, 1)]
        assert await view.range("tea", limit=2, descending=True) == [(6, 9), (2, 5)]
        assert await view.range("tea", high=(3, 4), limit=2, descending=True) == [(3, 3), (1, 1)]
        assert await view.range("tea", low=(3, 3), limit=2, inclusive="neither") == [(4, 3), (2, 5)]
        assert await view.range("coffee", low=3) == []
        assert await view.range("tea", limit=0) == [] == await view.range("tea", low=9, high=1)
        await sales.delete(3)
        await sales.update(1, price=4)
        assert await view.range("tea", low=3, high=5) == [(4, 3), (1, 4)]
        assert await view.lookup("tea") == [(5, None), (4, 3), (1, 4), (2, 5), (6, 9)]

    shop(tmp_path, work, shard_count)


@with_and_without_views
def test_a_view_gives_its_own_direction_unless_told_otherwise(tmp_path: Path, shard_count: int) -> None:
    async def work(db: AsyncDatabase) -> None:
        visits = db.table("visits")
        for day in (3, 1, 2):
            await visits.insert(day=date(2026, 1, day), place="park")
        newest = await db.view("SELECT day FROM visits WHERE place = ? ORDER BY day DESC")
        assert await newest.range("park", limit=2) == [(date(2026, 1, 3),), (date(2026, 1, 2),)]
        assert await newest.range("park", high=date(2026, 1, 3), limit=1) == [(date(2026, 1, 2),)]
        assert await newest.range("park", limit=1, descending=False) == [(date(2026, 1, 1),)]
        all_days = await db.view("SELECT place, day FROM visits ORDER BY day")
        assert await all_days.range(low=date(2026, 1, 2), limit=1) == [("park", date(2026, 1, 2))]
        await db.execute("ALTER TABLE visits ADD COLUMN note INT")
        assert await newest.range("park", limit=1) == [(date(2026, 1, 3),)]

    shop(tmp_path, work, shard_count)


def test_what_is_no_range_is_refused(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        for sql in (
            "SELECT id FROM sales WHERE item = ?",
            "SELECT id FROM sales WHERE item = ? ORDER BY price, id DESC",
            "SELECT id FROM sales WHERE item = ? ORDER BY price + 1",
            "SELECT id FROM sales WHERE item = ? ORDER BY price LIMIT 5",
        ):
            view = await db.view(sql)
            await raises(Unsupported, view.range("tea"))
        view = await db.view("SELECT id FROM sales WHERE item = ? ORDER BY price")
        await raises(ValueError, view.range("tea", low="cheap"))
        await raises(ValueError, view.range("tea", low=(1, 2)))
        await raises(ValueError, view.range("tea", "milk"))
        await raises(ValueError, view.range("tea", limit=-1))
        by_day = await db.view("SELECT place FROM visits ORDER BY day")
        await raises(ValueError, by_day.range(low="2026-02-30"))

    shop(tmp_path, work)


@with_and_without_views
def test_duplicate_rows_count_as_often_as_they_are_there(tmp_path: Path, shard_count: int) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.table("sales").insert_many([{"item": "tea", "price": number % 10} for number in range(1000)])
        view = await db.view("SELECT price FROM sales WHERE item = ? ORDER BY price")
        assert len(await view.range("tea", low=3, high=5)) == 200
        assert await view.range("tea", low=3, limit=150) == [(3,)] * 100 + [(4,)] * 50

    shop(tmp_path, work, shard_count)


@with_and_without_views
def test_keys_of_several_columns_are_those_of_the_question_marks(tmp_path: Path, shard_count: int) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.execute("CREATE TABLE steps (id INT PRIMARY KEY, day DATE, who VARCHAR(20), cost DECIMAL(6, 2), hidden INT)")
        rows = [(number, date(2026, 1, 1 + number % 2), "anna" if number % 3 else None, number % 4, -number) for number in range(24)]
        names = ("id", "day", "who", "cost", "hidden")
        await db.table("steps").insert_many([dict(zip(names, row)) for row in rows])
        view = await db.view("SELECT id FROM steps WHERE cost = ? AND who = ? AND day = ? ORDER BY hidden")
        for who in ("ANNA", None):
            wanted = sorted(row[0] for row in rows if row[1:4] == (date(2026, 1, 2), who and "anna", 3))
            assert wanted and await view.range(Decimal(3), who, date(2026, 1, 2)) == [(each,) for each in reversed(wanted)]
            assert await view.range(3, who, "2026-01-02", low=-wanted[-1], limit=1, inclusive="neither") == [(wanted[-2],)]

    shop(tmp_path, work, shard_count)


def test_bounds_of_decimals_may_be_texts_of_any_length(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program("CREATE TABLE exact (id INT PRIMARY KEY, d DECIMAL(65, 30))")
        values = ["-1", "0.000000000000000000000000000001", "0.000000000000000000000000000002", "12345678901234567890123456789"]
        await db.table("exact").insert_many([{"id": place, "d": value} for place, value in enumerate(values)])
        view = await db.view("SELECT id FROM exact ORDER BY d")
        for low, high in product(range(4), range(4)):
            assert await view.range(low=values[low], high=values[high]) == [(each,) for each in range(low, high)]
        with pytest.raises(ValueError, match="decimal column"):
            await view.range(low="none")

    shop(tmp_path, work)
