"""The client library over an engine in the same process: what it says, without what makes it fast."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.client import AsyncDatabase
from backend.execution.embedded import open_embedded
from dataflow.errors import InvalidStatement, MillraceError, Unsupported

PROGRAM = """
CREATE TABLE sales (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20), price DECIMAL(10, 2), KEY (item));
CREATE TABLE visits (day DATE NOT NULL, place VARCHAR(20) NOT NULL, first DATETIME(6), stay TIME,
    PRIMARY KEY (day, place));
"""


def shop(folder: Path, work: Any, shard_count: int = 1) -> None:
    """Run `work(database)` on a new database with the tables above; without any view if it has several shards."""

    async def main() -> None:
        engine = await open_embedded(folder, shard_count)
        try:
            await AsyncDatabase(engine).execute("CREATE DATABASE shop")
            database = AsyncDatabase(engine, "shop")
            await database.extend_program(PROGRAM)
            await work(database)
        finally:
            engine.store.close()  # type: ignore[attr-defined]

    asyncio.run(main())


async def raises(kind: type[Exception], work: Coroutine[Any, Any, Any]) -> str:
    with pytest.raises(kind) as caught:
        await work
    return str(caught.value)


def test_what_is_written_is_looked_up(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        sales = db.table("sales")
        assert (await sales.insert(item="tea", price=3)).last_insert_id == 1
        assert (await sales.insert({"item": "milk"}, price=Decimal("1.50"))).last_insert_id == 2
        view = await db.view("sales")
        assert view.columns == ("id", "item", "price")
        assert await view.lookup(1) == [(1, "tea", Decimal("3.00"))]
        assert (await sales.update(1, price=4)).affected == 1
        assert await view.lookup_many([2, 1, 9]) == [[(2, "milk", Decimal("1.50"))], [(1, "tea", Decimal("4.00"))], []]
        assert (await sales.delete(1)).affected == 1
        assert await view.lookup(1) == []

    shop(tmp_path, work)


def test_many_rows_are_one_statement(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        sales = db.table("sales")
        rows = [{"item": f"item {number % 10}", "price": number} for number in range(1000)]
        assert (await sales.insert_many(rows)).affected == 1000
        assert (await sales.insert_many([])).affected == 0
        twice = [{"id": 5000, "item": "x"}, {"id": 1, "item": "x"}]
        await raises(InvalidStatement, sales.insert_many(twice))
        assert len(await db.execute("SELECT id FROM sales WHERE id = ?", [5000])) == 0
        await raises(ValueError, sales.insert_many([{"item": "x"}, {"price": 1}]))
        count = await db.view("SELECT item, COUNT(*) AS n, SUM(price) AS total FROM sales WHERE item = ? GROUP BY item")
        assert await count.lookup("ITEM 3") == [("item 3", 100, Decimal("49800.00"))]

    shop(tmp_path, work)


@pytest.mark.parametrize("shard_count", [1, 2])
def test_rows_are_the_same_whether_a_view_is_kept_or_not(tmp_path: Path, shard_count: int) -> None:
    async def work(db: AsyncDatabase) -> None:
        prices = [("tea", 1), ("tea", 2), ("tea", 2), ("milk", 5), (None, 7), (None, None)]
        await db.table("sales").insert_many([{"item": item, "price": price} for item, price in prices])
        for sql, tea, milk, nothing, unknown in (
            ("SELECT id FROM sales WHERE item = ?", [(1,), (2,), (3,)], [(4,)], [], [(5,), (6,)]),
            ("SELECT id FROM sales WHERE price > 1 AND item = ?", [(2,), (3,)], [(4,)], [], [(5,)]),
            ("SELECT DISTINCT price FROM sales WHERE item = ? ORDER BY price DESC LIMIT 1", [(2,)], [(5,)], [], [(7,)]),
            ("SELECT COUNT(*) AS n, MAX(price) FROM sales WHERE item = ?", [(3, 2)], [(1, 5)], [(0, None)], [(2, 7)]),
            ("SELECT COUNT(*) AS n FROM sales WHERE item = ? HAVING n <> 1", [(3,)], [], [(0,)], [(2,)]),
            ("SELECT item, COUNT(*) AS n FROM sales WHERE item = ? GROUP BY item", [("tea", 3)], [("milk", 1)], [], [(None, 2)]),
        ):
            view = await db.view(sql)
            assert await view.lookup_many(["TEA", "milk", "coffee", None]) == [tea, milk, nothing, unknown], sql
            assert await view.lookup(None) == unknown

    shop(tmp_path, work, shard_count)


def test_dates_and_times_are_those_of_python(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        row = (date(2026, 2, 28), "park", datetime(2026, 2, 28, 9, 30, 0, 250), timedelta(hours=1, minutes=5))
        await db.table("visits").insert(day=row[0], place=row[1], first=row[2], stay=row[3])
        assert (await db.execute("SELECT * FROM visits WHERE first = ?", [row[2]])).rows == [row]
        view = await db.view("visits")
        assert await view.lookup((row[0], "Park")) == [row]
        by_place = await db.view("visits", key=("place",))
        assert await by_place.lookup("park") == [row]

    shop(tmp_path, work)


def test_views_keep_order_and_limit_and_empty_aggregates(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        top = await db.view("SELECT id FROM sales WHERE item = ? ORDER BY price DESC LIMIT 2")
        count = await db.view("SELECT COUNT(*) FROM sales WHERE item = ?")
        distinct = await db.view("SELECT DISTINCT price FROM sales WHERE item = ? ORDER BY price")
        everything = await db.view("SELECT COUNT(*) FROM sales")
        assert await count.lookup("tea") == [(0,)]
        for price in (3, 9, 4, 9, 1):
            await db.table("sales").insert(item="tea", price=price)
        for _ in range(3):
            assert await top.lookup("tea") == [(2,), (4,)]
            assert await count.lookup("tea") == [(5,)]
            assert [int(price) for (price,) in await distinct.lookup("tea")] == [1, 3, 4, 9]
            assert await everything.lookup(()) == [(5,)]

    shop(tmp_path, work)


def test_columns_of_many_keys(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.table("sales").insert_many([{"item": None if n % 3 == 0 else f"i{n}", "price": n} for n in range(10)])
        view = await db.view("SELECT id, item, price FROM sales WHERE id = ?")
        batch = await view.lookup_columns(np.array([3, 99, 1]), ["item", "id"])
        assert batch.present.tolist() == [True, False, True]
        assert batch.columns["id"].tolist() == [3, 1]
        assert batch.to_arrow().to_pylist() == [{"item": "i2", "id": 3}, {"item": None, "id": 1}]
        by_item = await db.view("sales", key=("item",))
        await db.table("sales").insert(item="i2")
        assert "several rows" in await raises(ValueError, by_item.lookup_columns(["i2"]))

    shop(tmp_path, work)


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        view = await db.view("SELECT COUNT(*) FROM sales")
        async with db.transaction() as transaction:
            await transaction.table("sales").insert(item="tea")
            assert (await transaction.execute("SELECT COUNT(*) FROM sales")).rows == [(1,)]
            assert await view.lookup(()) == [(0,)]
        assert await view.lookup(()) == [(1,)]
        with pytest.raises(KeyError):
            async with db.transaction() as transaction:
                await transaction.table("sales").insert(item="tea")
                raise KeyError
        assert await view.lookup(()) == [(1,)]
        async with db.transaction() as transaction:
            await transaction.table("sales").update(1, price=5)
            other = asyncio.ensure_future(db.table("sales").update(1, price=6))
            assert (await asyncio.wait({other}, timeout=0.05))[1] == {other}, "it waits for the transaction"
        await other
        assert (await db.execute("SELECT price FROM sales WHERE id = 1")).rows == [(Decimal("6.00"),)]

    shop(tmp_path, work)


def test_a_view_follows_a_change_of_its_table(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.table("sales").insert(item="tea", price=1)
        view = await db.view("sales")
        assert await view.lookup(1) == [(1, "tea", Decimal("1.00"))]
        await db.execute("ALTER TABLE sales ADD COLUMN note VARCHAR(10) DEFAULT 'none'")
        assert await view.lookup(1) == [(1, "tea", Decimal("1.00"), "none")]
        await db.execute("DROP TABLE sales")
        await raises(MillraceError, view.lookup(1))

    shop(tmp_path, work)


def test_what_cannot_be_a_view_is_refused_when_it_is_made(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        for sql in (
            "SELECT * FROM sales WHERE price > ?",
            "SELECT * FROM sales WHERE item = ? OR id = ?",
            "SELECT id + ? FROM sales",
            "SELECT NOW() FROM sales WHERE id = ?",
            "DELETE FROM sales WHERE id = ?",
        ):
            await raises(Unsupported, db.view(sql))
        await raises(InvalidStatement, db.view("nothing"))
        view = await db.view("sales")
        await raises(ValueError, view.lookup((1, 2)))

    shop(tmp_path, work)


def test_numbers_of_any_kind_ask_for_a_number(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.table("sales").insert(item="tea", price=5)
        by_id, by_price = await db.view("sales"), await db.view("SELECT item FROM sales WHERE price = ?")
        for one in (1, 1.0, Decimal("1.00"), True):
            assert len(await by_id.lookup(one)) == 1
        for five in (5, 5.0, Decimal("5.000")):
            assert await by_price.lookup(five) == [("tea",)]
        for other in (1.5, Decimal("1.5"), 1 << 63, 1 << 70, -(1 << 70)):
            assert await by_id.lookup(other) == []
        for _ in range(4):
            assert len(await db.execute("SELECT id, COUNT(*) FROM sales WHERE id = 1.0 GROUP BY id")) == 1
            assert len(await db.execute("SELECT id, COUNT(*) FROM sales WHERE id = 1.5 GROUP BY id")) == 0

    shop(tmp_path, work)


def test_a_statement_computes_in_slices_and_is_ended_where_it_computes(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 400) "

    async def work(db: AsyncDatabase) -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.ensure_future(count())
        found = await db.execute(numbers + "SELECT COUNT(*) FROM n a JOIN n b ON a.i < b.i")
        assert [*found] == [(400 * 399 // 2,)] and turns > 10
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await db.execute(numbers + "SELECT COUNT(*) FROM n a JOIN n b JOIN n c ON a.i + b.i < c.i")
        counting.cancel()
        wide = "SELECT a.i, b.i, CONCAT(a.i, REPEAT('x', 1000)), CONCAT(b.i, REPEAT('y', 4000)) t FROM n a JOIN n b ORDER BY t"
        assert "statement_memory" in await raises(MillraceError, db.execute(numbers + wide))

    shop(tmp_path, work)
