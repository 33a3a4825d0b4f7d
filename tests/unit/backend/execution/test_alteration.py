"""ALTER TABLE that stores rows anew, while others read and write the table."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from backend.execution.alteration import abandon_copies
from backend.execution.embedded import LocalCatalogStore
from backend.execution.transaction import SchemaChanged
from controller.catalog import CatalogChange
from dataflow.errors import Condition, InvalidStatement
from tests.unit.backend.execution.engine import Engine, run

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))"


async def written(engine: Engine, sql: str) -> None:
    """As a session runs it: planned again when the schema has changed."""
    while True:
        try:
            await engine.run(sql)
            return
        except SchemaChanged:
            await engine.database.refresh_catalog()


def test_writes_during_the_copy_are_all_there_after_it(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        for first in range(0, 2000, 500):
            await engine.run("INSERT INTO t VALUES " + ", ".join(f"({n}, {n})" for n in range(first, first + 500)))

        async def write(number: int) -> None:
            await asyncio.sleep(0)
            await written(engine, f"INSERT INTO t VALUES ({2000 + number}, {number})")
            await written(engine, f"UPDATE t SET n = n + 1 WHERE id = {number}")

        async def read() -> None:
            for _ in range(20):
                [(count,)] = await engine.rows("SELECT COUNT(*) FROM t WHERE id < 2000")
                assert count == 2000
                await engine.database.refresh_catalog()

        alter = engine.define("ALTER TABLE t MODIFY n VARCHAR(10)")
        await asyncio.gather(alter, read(), *(write(number) for number in range(50)))
        assert await engine.rows("SELECT COUNT(*) FROM t") == [(2050,)]
        assert await engine.rows("SELECT n FROM t WHERE id IN (7, 2007) ORDER BY id") == [("8",), ("7",)]
        assert await engine.rows("SELECT id FROM t WHERE n = '1999'") == [(1999,)]

    run(tmp_path, scenario)


def test_a_value_that_does_not_fit_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        await engine.run("INSERT INTO t VALUES (1, 1), (2, 1000)")
        with pytest.raises(InvalidStatement) as raised:
            await engine.define("ALTER TABLE t MODIFY n TINYINT")
        assert raised.value.condition is Condition.OUT_OF_RANGE
        await written(engine, "INSERT INTO t VALUES (3, 2000)")
        assert await engine.rows("SELECT n FROM t ORDER BY id") == [(1,), (1000,), (2000,)]
        assert [table.name for table in engine.database.catalog.tables.values()] == ["t"]

    run(tmp_path, scenario)


def test_a_copy_that_was_cut_off_is_undone(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        catalogs = LocalCatalogStore(engine.store)
        catalog = await catalogs.load()
        [table] = catalog.tables.values()
        frozen = replace(table, altering=True, version=table.version + 1)
        hidden = replace(table, id=catalog.next_table_id, name=f"#sql-alter-{catalog.next_table_id}")
        await catalogs.replace(catalog.version, CatalogChange(tables_put=(frozen, hidden)))
        after = await abandon_copies(catalogs)
        [table] = after.tables.values()
        assert not table.altering and table.version == frozen.version + 1

    run(tmp_path, scenario)
