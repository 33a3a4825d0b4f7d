"""Indexes built while rows are written, and definitions that fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backend.execution.definition import finish_builds, unchecked, unfinished_builds, unfinished_checks
from backend.execution.embedded import LocalCatalogStore
from controller.sql.definitions.definition import plan_definition
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import InvalidStatement
from persistence.layout import index_ranges
from tests.unit.backend.execution.engine import Engine, run

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"


async def fill(engine: Engine, count: int) -> None:
    values = ", ".join(f"({number}, {number}, {number % 7})" for number in range(count))
    await engine.run(f"INSERT INTO t VALUES {values}")


def entries(engine: Engine, index_name: str) -> int:
    """How many entries are stored for an index."""
    table = engine.database.catalog.table("d", "t")
    index = next(index for index in table.indexes if index.name == index_name)
    return sum(
        len(chunk)
        for shard in engine.store.shards
        for start, stop in index_ranges(table.id, index.id)
        for chunk in shard.view().scan(start, stop)
    )


@pytest.mark.parametrize("unique", ("", "UNIQUE"))
def test_an_index_built_while_rows_are_written_has_an_entry_for_each_row(unique: str, tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        await fill(engine, 3_000)
        building = asyncio.create_task(engine.define(f"CREATE {unique} INDEX i ON t (a)"))
        written = 0
        while not building.done():
            try:
                await engine.run(f"UPDATE t SET a = a + 100000 WHERE id = {written * 7 % 3000}")
                await engine.run(f"DELETE FROM t WHERE id = {2999 - written}")
                await engine.run(f"INSERT INTO t VALUES ({10_000 + written}, {50_000 + written}, 0)")
            except Exception:
                await engine.database.refresh_catalog()
            written += 1
        await building
        assert written > 1
        assert not engine.database.catalog.table("d", "t").indexes[0].building
        [(count,)] = await engine.rows("SELECT COUNT(*) FROM t")
        assert entries(engine, "i") == count
        for key, a in await engine.rows("SELECT id, a FROM t"):
            assert (key,) in await engine.rows(f"SELECT id FROM t WHERE a = {a}")

    run(tmp_path, scenario)


@pytest.mark.parametrize("shard_count", (1, 3))
def test_an_index_built_later_has_the_entries_that_writes_would_have_made(shard_count: int, tmp_path: Path) -> None:
    columns = "id BIGINT, n INT NOT NULL, wide BIGINT UNSIGNED NOT NULL, name VARCHAR(20), day DATE NOT NULL, price DECIMAL(8, 2) NOT NULL, some INT"
    keys = ["(n)", "(day, n DESC)", "(name, n)", "(price)", "(some)", "(wide)", "(name(2))"]

    async def scenario(engine: Engine) -> None:
        indexes = [f"INDEX i{number} {key}" for number, key in enumerate(keys)]
        indexes += [f"UNIQUE INDEX u{number} (id, {key[1:]}" for number, key in enumerate(keys)]
        await engine.define(f"CREATE TABLE before ({columns}, PRIMARY KEY (id DESC), {', '.join(indexes)})")
        await engine.define(f"CREATE TABLE later ({columns}, PRIMARY KEY (id DESC))")
        for first in range(0, 1_200, 300):
            rows = ", ".join(
                f"({n * 7 - 900}, {n % 13 - 6}, {2**63 + n}, {'NULL' if n % 50 == 0 else repr(f'Näme{n % 90}')}, "
                f"'20{n % 90 + 10}-02-0{n % 9 + 1}', {n / 4}, {n % 5 or 'NULL'})"
                for n in range(first, first + 300)
            )
            for table in ("before", "later"):
                await engine.run(f"INSERT INTO {table} VALUES {rows}")
        await engine.define(f"ALTER TABLE later {', '.join('ADD ' + each for each in indexes)}")
        stored = []
        for name in ("before", "later"):
            table = engine.database.catalog.table("d", name)
            ranges = [(index, each) for index in table.indexes for each in index_ranges(table.id, index.id)]
            views = [shard.view() for shard in engine.store.shards]
            stored.append({
                (index.name, start[:1], key[len(start) :]): value
                for index, (start, stop) in ranges for view in views for chunk in view.scan(start, stop) for key, _, value in chunk
            })  # fmt: skip
        assert stored[0] == stored[1]

    run(tmp_path, scenario, shard_count)


def test_a_unique_index_over_duplicates_is_refused_and_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        await fill(engine, 1_000)
        with pytest.raises(InvalidStatement) as raised:
            await engine.define("CREATE UNIQUE INDEX i ON t (b)")
        assert str(raised.value).startswith("Duplicate entry '") and str(raised.value).endswith("' for key 't.i'")
        await engine.database.refresh_catalog()
        assert engine.database.catalog.table("d", "t").indexes == ()
        await engine.run("INSERT INTO t VALUES (5000, 1, 1)")
        assert await engine.rows("SELECT COUNT(*) FROM t") == [(1_001,)]

    run(tmp_path, scenario)


def test_all_of_an_alter_is_undone_when_one_of_its_indexes_fails(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        await fill(engine, 100)
        with pytest.raises(InvalidStatement):
            await engine.define("ALTER TABLE t ADD COLUMN c INT DEFAULT 5, ADD INDEX k (a), ADD UNIQUE i (b)")
        await engine.database.refresh_catalog()
        table = engine.database.catalog.table("d", "t")
        assert [column.name for column in table.columns] == ["id", "a", "b"] and table.indexes == ()
        assert await engine.rows("SELECT * FROM t WHERE id = 8") == [(8, 8, 1)]
        await engine.run("INSERT INTO t VALUES (101, 1, 1)")
        await engine.define("ALTER TABLE t ADD COLUMN c INT DEFAULT 6")
        assert await engine.rows("SELECT * FROM t WHERE id > 98") == [(99, 99, 1, 6), (101, 1, 1, 6)]

    run(tmp_path, scenario)


def test_a_build_that_was_interrupted_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(TABLE)
        await fill(engine, 500)
        catalogs = LocalCatalogStore(engine.store)
        before = await catalogs.load()
        change = plan_definition("CREATE INDEX i ON t (b)", before, "d", DEFAULT_SETTINGS)
        building = await catalogs.replace(before.version, change)
        engine.database.learn_catalog(building)
        assert unfinished_builds(building) == change.builds
        assert len(await engine.rows("SELECT id FROM t WHERE b = 3")) == 71  # not read before it is ready
        assert entries(engine, "i") == 0
        engine.database.learn_catalog(await finish_builds(change.builds, catalogs, engine.store))
        assert entries(engine, "i") == 500
        assert len(await engine.rows("SELECT id FROM t WHERE b = 3")) == 71

    run(tmp_path, scenario)


@pytest.mark.parametrize("orphans", (False, True))
def test_a_foreign_key_whose_rows_were_not_checked_is_checked_or_goes(orphans: bool, tmp_path: Path) -> None:
    async def interrupted(engine: Engine) -> None:
        await engine.define(TABLE, "CREATE TABLE c (id INT PRIMARY KEY, t INT, KEY (t))")
        await fill(engine, 3)
        await engine.run(f"INSERT INTO c VALUES (1, {9 if orphans else 2})")
        catalogs = LocalCatalogStore(engine.store)
        before = await catalogs.load()
        sql = "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (t) REFERENCES t (id), ADD UNIQUE INDEX u (t)"
        change = unchecked(plan_definition(sql, before, "d", DEFAULT_SETTINGS))
        assert unfinished_checks(await catalogs.replace(before.version, change)) == change.checks

    async def again(engine: Engine) -> None:
        table = engine.database.catalog.table("d", "c")
        assert [(key.name, key.unchecked) for key in table.foreign_keys] == ([] if orphans else [("k", False)])
        assert not any(index.building for index in table.indexes)

    run(tmp_path, interrupted)
    run(tmp_path, again, create=False)


def test_a_unique_index_that_was_half_built_over_duplicates_goes(tmp_path: Path) -> None:
    async def interrupted(engine: Engine) -> None:
        await engine.define(TABLE)
        await fill(engine, 20)
        catalogs = LocalCatalogStore(engine.store)
        before = await catalogs.load()
        await catalogs.replace(
            before.version, plan_definition("CREATE UNIQUE INDEX i ON t (b)", before, "d", DEFAULT_SETTINGS)
        )

    async def again(engine: Engine) -> None:
        assert engine.database.catalog.table("d", "t").indexes == ()

    run(tmp_path, interrupted)
    run(tmp_path, again, create=False)


def test_a_truncated_table_is_empty_and_counts_from_one(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE)")
        await engine.run("INSERT INTO t (a) VALUES (1), (2)")
        await engine.define("TRUNCATE TABLE t")
        assert await engine.rows("SELECT * FROM t") == []
        assert (await engine.done("INSERT INTO t (a) VALUES (1)")).last_insert_id == 1

    run(tmp_path, scenario)


def test_everything_is_there_when_opened_again(tmp_path: Path) -> None:
    async def first(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, KEY (a))")
        await engine.run("INSERT INTO t (a) VALUES (1), (2)")

    async def second(engine: Engine) -> None:
        assert await engine.rows("SELECT * FROM d.t WHERE a = 2") == [(2, 2)]
        assert (await engine.done("INSERT INTO t (a) VALUES (3)")).last_insert_id == 3

    run(tmp_path, first)
    run(tmp_path, second, create=False)
