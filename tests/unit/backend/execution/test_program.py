"""Several definition statements as one transition: all of them take effect, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.catalog import Catalog
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import Condition, InvalidStatement, MillraceError, Unsupported
from tests.unit.backend.execution.engine import Engine, run


async def extend(engine: Engine, *statements: str) -> None:
    await engine.database.extend_program(statements, "d", DEFAULT_SETTINGS)


async def refused(engine: Engine, *statements: str) -> MillraceError:
    """The error of a program that leaves everything as it was."""
    before = shown(engine.database.catalog)
    with pytest.raises(MillraceError) as caught:
        await extend(engine, *statements)
    assert shown(engine.database.catalog) == before
    return caught.value


def shown(catalog: Catalog) -> tuple[object, ...]:
    """What statements see of a catalog: no versions."""
    tables = {
        (each.database, each.name): (
            [column.name for column in each.columns],
            [(index.name, index.building) for index in each.indexes],
            [key.name for key in each.foreign_keys],
        )
        for each in catalog.tables.values()
    }
    return set(catalog.databases), tables, dict(catalog.views)


def test_later_statements_build_on_earlier_ones_in_one_version(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        version = engine.database.catalog.version
        await extend(
            engine,
            "CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(10))",
            "CREATE TABLE child (id INT PRIMARY KEY, parent INT)",
            "CREATE INDEX by_name ON parent (name)",
            "ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent (id), ADD COLUMN note TEXT",
            "CREATE VIEW names AS SELECT name FROM parent",
            "CREATE VIEW upper_names AS SELECT UPPER(name) AS name FROM names",
        )
        assert engine.database.catalog.version == version + 1
        await engine.done("INSERT INTO parent VALUES (1, 'a')")
        await engine.done("INSERT INTO child VALUES (1, 1, 'x')")
        assert await engine.rows("SELECT name FROM upper_names") == [("A",)]
        with pytest.raises(InvalidStatement):
            await engine.done("INSERT INTO child VALUES (2, 7, 'x')")

    run(tmp_path, scenario)


def test_a_statement_that_fails_takes_the_others_with_it(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT id FROM t")
        error = await refused(
            engine, "CREATE TABLE other (id INT)", "DROP VIEW v", "CREATE VIEW w AS SELECT nothing FROM t"
        )
        assert error.condition is Condition.UNKNOWN_COLUMN
        error = await refused(engine, "DROP TABLE t", "INSERT INTO t VALUES (1)")
        assert error.condition is Condition.PARSE_ERROR
        assert (await refused(engine)).condition is Condition.EMPTY_QUERY
        assert await engine.rows("SELECT id FROM v") == []

    run(tmp_path, scenario)


def test_an_index_that_stored_rows_forbid_takes_the_others_with_it(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "CREATE VIEW old AS SELECT id FROM t")
        await engine.done("INSERT INTO t VALUES (1, 5), (2, 5)")
        error = await refused(
            engine,
            "CREATE DATABASE e",
            "CREATE TABLE e.other (id INT PRIMARY KEY)",
            "CREATE OR REPLACE VIEW old AS SELECT n FROM t",
            "CREATE VIEW new AS SELECT n FROM t",
            "CREATE UNIQUE INDEX u ON t (n)",
        )
        assert error.condition is Condition.DUPLICATE_ENTRY
        error = await refused(
            engine,
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES parent (id)",
        )
        assert error.condition is Condition.NO_REFERENCED_ROW
        await engine.done("INSERT INTO t VALUES (3, 5)")
        assert await engine.rows("SELECT id FROM old") == [(1,), (2,), (3,)]
        await engine.done("DELETE FROM t WHERE id > 1")
        await extend(engine, "CREATE UNIQUE INDEX u ON t (n)", "DROP VIEW old")
        with pytest.raises(InvalidStatement):
            await engine.done("INSERT INTO t VALUES (4, 5)")

    run(tmp_path, scenario)


def test_what_comes_and_goes_within_a_program_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT id FROM t")
        before = shown(engine.database.catalog)
        await extend(
            engine,
            "CREATE TABLE passing (id INT PRIMARY KEY, n INT)",
            "CREATE INDEX i ON passing (n)",
            "ALTER TABLE t ADD COLUMN c INT",
            "ALTER TABLE t DROP COLUMN c",
            "DROP TABLE passing",
            "DROP VIEW v",
            "CREATE VIEW v AS SELECT id FROM t",
        )
        assert shown(engine.database.catalog) == before
        await extend(engine, "DROP DATABASE d", "CREATE DATABASE d", "CREATE TABLE d.s (id INT PRIMARY KEY)")
        assert shown(engine.database.catalog)[1:] == ({("d", "s"): (["id"], [], [])}, {})

    run(tmp_path, scenario)


def test_what_could_not_be_taken_back_is_refused_among_others(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "CREATE TABLE u (id INT)")
        await engine.done("INSERT INTO t VALUES (1, 1)")
        assert isinstance(await refused(engine, "ALTER TABLE t MODIFY n VARCHAR(9)", "DROP TABLE u"), Unsupported)
        assert isinstance(await refused(engine, "DROP TABLE u", "CREATE INDEX i ON t (n)"), Unsupported)
        await extend(engine, "ALTER TABLE t MODIFY n VARCHAR(9)")
        await extend(engine, "DROP TABLE u", "CREATE VIEW v AS SELECT n FROM t")
        assert await engine.rows("SELECT n FROM v") == [("1",)]

    run(tmp_path, scenario)
