"""Objects of Python as values of SQL, and back: the same value whatever the way, or an error that says why not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.client import AsyncDatabase
from dataflow.errors import InvalidStatement, Unsupported
from tests.unit.backend.client.test_embedded import raises, shop

BIG = 1 << 64


def test_integers_of_more_than_64_bits_are_decimals(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        assert (await db.execute("SELECT ? + 1, ? - 1", [BIG, -BIG])).rows == [(Decimal(BIG + 1), Decimal(-BIG - 1))]
        assert (await db.execute("SELECT ? + 1", [Decimal(10) ** 80])).rows == [(1e80,)]
        assert (await db.execute("SELECT ? * 2", [Decimal("0." + "1" * 100)])).rows == [(Decimal("0." + "2" * 30),)]
        assert "Out of range" in await raises(InvalidStatement, db.table("sales").insert(price=Decimal(10) ** 80))

    shop(tmp_path, work)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("nan"), Decimal("-inf")], ids=str)
def test_what_is_no_number_is_no_value(tmp_path: Path, value: Any) -> None:
    async def work(db: AsyncDatabase) -> None:
        sales = db.table("sales")
        for refused in (
            db.execute("SELECT ?", [value]),
            sales.insert(item=value),
            sales.insert_many([{"item": "tea"}, {"item": value}]),
            sales.insert_columns({"item": [value] * 50}),
        ):
            assert "no value of SQL" in await raises(ValueError, refused)
        assert (await db.execute("SELECT COUNT(*) FROM sales")).rows == [(0,)]

    shop(tmp_path, work)


def test_moments_with_a_zone_are_those_of_utc(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        given = datetime(2024, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
        visits = db.table("visits")
        await visits.insert(day="2024-03-01", place="here", first=given)
        await visits.insert_many([{"day": "2024-03-01", "place": f"there {n}", "first": given} for n in range(20)])
        assert (await db.execute("SELECT DISTINCT first FROM visits")).rows == [(datetime(2024, 2, 29, 23, 30),)]
        by_first = await db.view("visits", key="first")
        assert len(await by_first.lookup(given)) == 21
        assert "no date" in await raises(ValueError, db.execute("SELECT ?", [np.datetime64(10**8, "Y")]))

    shop(tmp_path, work)


def test_dates_that_only_mysql_has_are_its_texts(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(
            "CREATE TABLE days (id INT PRIMARY KEY, d DATE NOT NULL, m DATETIME(2) NOT NULL, KEY (d), KEY (m))"
        )
        await db.execute("INSERT IGNORE INTO days VALUES (1, '2024-02-30', '0000-00-00'), (2, '2024-02-29', '2024-02-29')")
        row = (1, "0000-00-00", "0000-00-00 00:00:00.00")
        assert (await db.execute("SELECT * FROM days WHERE id = 1")).rows == [row]
        for column, value in zip(("id", "d", "m"), row):
            assert await (await db.view("days", key=column)).lookup(value) == [row]
        batch = await (await db.view("days")).lookup_columns([1, 2])
        assert np.isnat(batch.columns["d"]).tolist() == np.isnat(batch.columns["m"]).tolist() == [True, False]

    shop(tmp_path, work)


def test_a_change_of_one_row_is_never_one_of_others(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program("CREATE TABLE names (name VARCHAR(9) PRIMARY KEY, n INT)")
        names = db.table("names")
        await names.insert_many([{"name": name, "n": 0} for name in ("7", "07", "7.0", "0")])
        for wrong in (7, 0, Decimal(7), b"7"):
            assert "no key of a varchar" in await raises(ValueError, names.update(wrong, n=1))
            assert "no key of a varchar" in await raises(ValueError, names.delete(wrong))
        assert (await names.update("7", n=1)).affected == 1
        assert (await names.delete("0")).affected == 1
        assert (await db.execute("SELECT name, n FROM names ORDER BY name")).rows == [("07", 0), ("7", 1), ("7.0", 0)]

    shop(tmp_path, work)


def test_what_is_asked_for_in_the_wrong_way_is_said(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        assert (await db.view("sales", key="item")).columns == ("id", "item", "price")
        assert "its ?" in await raises(ValueError, db.view("SELECT * FROM sales WHERE id = ?", key=["item"]))
        for sql in ("BEGIN", "SHOW TABLES", "set @a = 1"):
            assert "over MySQL" in await raises(Unsupported, db.execute(sql))
        await db.extend_program("CREATE VIEW cheap AS SELECT DISTINCT item, price FROM sales WHERE price < 3")
        assert "cheap of the INSERT is not insertable" in await raises(InvalidStatement, db.table("cheap").insert(item="tea"))
        for verb, sql in {"UPDATE": "UPDATE cheap SET price = 1", "DELETE": "DELETE FROM shop.cheap"}.items():
            assert f"cheap of the {verb} is not updatable" in await raises(InvalidStatement, db.execute(sql))
        ordered = await db.view("SELECT id FROM sales WHERE item = ? ORDER BY price")
        for limit in (1.5, "2"):
            with pytest.raises(TypeError):
                await ordered.range("tea", limit=limit)  # type: ignore[arg-type]
        assert await ordered.range("tea", limit=np.int64(2)) == []  # type: ignore[arg-type]

    shop(tmp_path, work)
