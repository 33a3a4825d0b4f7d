"""Rows that are inserted by column are those that are inserted one by one, and so is what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.client import AsyncDatabase
from dataflow.errors import MillraceError
from tests.unit.backend.client.test_embedded import shop

TABLE = """
CREATE TABLE {name} (a INT NOT NULL, b BIGINT UNSIGNED, c TINYINT, d VARCHAR(8), e DOUBLE, f DECIMAL(8, 2),
    g DATE, h DATETIME(6), i TIME(6), KEY (a), KEY (c, b))
"""
COLUMNS: Sequence[Mapping[str, Any]] = (
    {"a": np.arange(200)},
    {"a": np.arange(3)},
    {"a": np.arange(200, dtype=np.int32), "c": np.arange(200) % 100},
    {"a": list(range(200)), "c": [True, False] * 100},
    {"a": np.arange(200) % 2 == 0, "b": np.arange(200, dtype=np.uint8)},
    {"a": np.arange(200), "b": np.arange(200, dtype=np.uint64) + np.uint64((1 << 63) - 5)},
    {"a": [1] * 199 + [None]},
    {"a": [1] * 199 + ["17"]},
    {"a": [1] * 199 + ["x"]},
    {"a": [1] * 199 + [Decimal(7)]},
    {"a": [1.0, 2.5] * 100},
    {"a": np.array([1.0, 2.5] * 100)},
    {"a": np.arange(200) + (1 << 31)},
    {"a": np.arange(200), "c": np.arange(200)},
    {"a": np.arange(200), "c": [None, 5] * 100},
    {"a": np.arange(200), "b": np.arange(200) - 1},
    {"a": [1 << 80] * 200},
    {"a": np.arange(200), "d": np.arange(200)},
    {"a": np.arange(200), "d": np.array(["x", "longer than eight"] * 100)},
    {"a": np.arange(200), "d": np.array(["x", None] * 100, object), "e": np.arange(200) / 4, "f": np.arange(200)},
    {"a": np.arange(2), "g": np.array(["2024-02-29", "2025-01-01"], "M8[D]"), "h": np.array(["2024-02-29T01:02:03.5", "NaT"], "M8[ns]")},
    {"a": np.arange(2), "i": np.array([5_000_000, -1], "m8[us]"), "h": [datetime(2024, 1, 2), None], "g": [date(2024, 1, 2)] * 2},
    {"a": [1, 2, 3], "g": [None, date(2024, 1, 2), datetime(2024, 1, 3, 4)], "h": [None, date(2024, 1, 2), datetime(2024, 1, 3, 4)]},
    {"a": np.ma.masked_array(np.arange(200), np.arange(200) == 7)},
    {"nothing": np.arange(200)},
)


def by_rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as objects of Python."""

    def listed(column: Any) -> list[Any]:
        if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
            column = column.astype(f"{column.dtype.kind}8[us]")
        return list(column.tolist() if isinstance(column, np.ndarray) else column)

    return [dict(zip(columns, row)) for row in zip(*map(listed, columns.values()))]


async def outcome(work: Any) -> object:
    try:
        return (await work).affected
    except MillraceError as error:
        return error.condition, str(error).replace("together", "apart")


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_columns_are_inserted_as_their_rows_are(tmp_path: Path, columns: Mapping[str, Any]) -> None:
    async def work(db: AsyncDatabase) -> None:
        for name in ("together", "apart"):
            await db.extend_program(TABLE.format(name=name))
        at_once = await outcome(db.table("together").insert_columns(columns))
        alone: object = 0
        async with db.transaction() as transaction:
            for row in by_rows(columns):
                alone = await outcome(transaction.table("apart").insert(row))
                if not isinstance(alone, int):
                    transaction.rollback()
                    break
        if isinstance(alone, int):
            assert at_once == len(by_rows(columns))
        else:
            assert isinstance(at_once, tuple) and at_once[0] is alone[0]  # type: ignore[index]
        if isinstance(at_once, int) and at_once:
            assert await outcome(db.table("together").insert_many(by_rows(columns))) == at_once
            await db.execute("INSERT INTO apart SELECT * FROM apart")
            at_once *= 2
        ordered = "SELECT * FROM {} ORDER BY a, b, c, d, e, f, g, h, i"
        found = (await db.execute(ordered.format("together"))).rows
        assert found == (await db.execute(ordered.format("apart"))).rows
        assert len(found) == (at_once if isinstance(at_once, int) else 0)
        by_index = "SELECT COUNT(*) FROM {} WHERE a = 5"
        assert (await db.execute(by_index.format("together"))).rows == (await db.execute(by_index.format("apart"))).rows

    shop(tmp_path, work)


def test_columns_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        sales = db.table("sales")
        refused: Sequence[Mapping[str, Any]] = ({}, {"item": ["a"], "price": [1, 2]}, {"price": np.zeros((2, 2), np.int64)})
        for columns in refused:
            with pytest.raises(ValueError):
                await sales.insert_columns(columns)
        assert (await sales.insert_columns({"price": np.zeros(0)})).affected == 0

    shop(tmp_path, work)


def test_columns_are_numbered_and_checked_like_rows(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        await db.extend_program(
            "CREATE TABLE people (id INT PRIMARY KEY);"
            "CREATE TABLE visited (number INT AUTO_INCREMENT PRIMARY KEY, who INT NOT NULL, twice INT AS (who * 2),"
            " CHECK (who < 1000), FOREIGN KEY (who) REFERENCES people (id))"
        )
        people, visited = db.table("people"), db.table("visited")
        await people.insert_columns({"id": np.arange(300)})
        with pytest.raises(MillraceError, match="Duplicate entry '299'"):
            await people.insert_columns({"id": np.arange(299, 600)})
        with pytest.raises(MillraceError, match="Duplicate entry '301'"):
            await people.insert_columns({"id": np.array([*range(300, 500), 301])})
        assert (await visited.insert_columns({"who": np.arange(200)})).last_insert_id == 1
        assert (await visited.insert_columns({"who": np.arange(200)})).last_insert_id == 201
        for wrong in (300, 1000):
            with pytest.raises(MillraceError, match=r"foreign key|Check constraint"):
                await visited.insert_columns({"who": np.array([*range(200), wrong])})
        assert (await db.execute("SELECT COUNT(*), MAX(number), SUM(twice) FROM visited")).rows == [(400, 400, 79600)]
        assert (await db.execute("SELECT COUNT(*) FROM people")).rows == [(300,)]

    shop(tmp_path, work)


def test_columns_of_a_transaction_come_with_it(tmp_path: Path) -> None:
    async def work(db: AsyncDatabase) -> None:
        begun = db.begin()
        await begun.table("sales").insert_columns({"price": np.arange(200)})
        assert len(await begun.execute("SELECT id FROM sales")) == 200
        assert len(await db.execute("SELECT id FROM sales")) == 0
        await begun.commit()
        assert len(await db.execute("SELECT id FROM sales")) == 200

    shop(tmp_path, work)
