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


COLUMNS = "id INT, n INT NOT NULL, wide BIGINT UNSIGNED, name VARCHAR(20), day DATE NOT NULL, at DATETIME(3), price DECIMAL(8, 2), real_ DOUBLE, b VARBINARY(9)"


@pytest.mark.parametrize(
    "change",
    (
        "MODIFY n BIGINT NOT NULL, MODIFY wide BIGINT UNSIGNED NOT NULL DEFAULT 3",
        "MODIFY n VARCHAR(30) NOT NULL, MODIFY name VARCHAR(40) CHARACTER SET latin1, ADD KEY (name, n)",
        "MODIFY n DECIMAL(12, 3) NOT NULL, MODIFY price DECIMAL(20, 4), MODIFY day DATETIME NOT NULL",
        "MODIFY at TIMESTAMP(6) NULL, MODIFY price DOUBLE, MODIFY n DOUBLE NOT NULL",
        "MODIFY at VARCHAR(40), MODIFY real_ VARCHAR(30), MODIFY day INT NOT NULL, MODIFY price VARCHAR(20)",
        "MODIFY wide TINYINT, MODIFY name CHAR(9), MODIFY b VARCHAR(9)",
        "ADD PRIMARY KEY (id, name)",
        "ADD PRIMARY KEY (id), ADD UNIQUE (n, id), MODIFY price INT",
        "ADD PRIMARY KEY (n)",
        "MODIFY id INT AUTO_INCREMENT PRIMARY KEY",
        "MODIFY at DATE, MODIFY real_ DECIMAL(10, 3), MODIFY b BINARY(9)",
        "MODIFY name VARCHAR(5)",
    ),
)
@pytest.mark.parametrize("shard_count", (1, 3))
def test_rows_copied_by_column_are_those_that_are_copied_one_by_one(
    change: str, shard_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []

    async def scenario(engine: Engine) -> None:
        await engine.define(f"CREATE TABLE t ({COLUMNS}, KEY (day), KEY (wide))")
        rows = [
            f"({n}, {n % 13 - 6}, {2**63 + n if n == 601 else n % 100}, {'NULL' if n == 650 else repr('Näme' * (n % 2) + str(n % 90))}, "
            f"'20{n % 90 + 10}-02-0{n % 9 + 1}', '2021-03-04 05:06:07.{n % 3}', {n / 4}, {n / 8 * (-1) ** n}, x'{n % 100:02}ff')"
            for n in range(700)
        ]
        await engine.run(f"INSERT INTO t VALUES {', '.join(rows)}")
        try:
            await engine.define(f"ALTER TABLE t {change}")
        except InvalidStatement as error:
            found.append(str(error))
        await engine.database.refresh_catalog()
        found.append(await engine.rows("SELECT * FROM t ORDER BY id, n"))
        found.append(await engine.rows("SELECT id FROM t WHERE wide = 7 ORDER BY id"))
        found.append(await engine.rows("SELECT MAX(id), COUNT(*) FROM t WHERE day = '2021-02-06'"))

    run(tmp_path / "columns", scenario, shard_count)
    monkeypatch.setattr("backend.execution.column_copy.ROWS_MIN", 1 << 30)
    run(tmp_path / "rows", scenario, shard_count)
    half = len(found) // 2
    assert found[:half] == found[half:]
