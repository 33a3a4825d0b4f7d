"""Whole schemas: we accept what MariaDB accepts, describe it as it does, and read our own text back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps import lobsters, vote
from controller.sql.definitions.definition import DEFINITIONS, plan_definition
from controller.sql.definitions.show_create import default_text, show_create_table, type_text
from controller.sql.definitions.table_draft import is_hidden
from controller.sql.text.lexer import leading_words, split_statements
from dataflow.errors import Unsupported
from dataflow.schema import Table, TableColumn
from dataflow.values.types import INTEGERS, Kind
from tests.mariadb import MariaDB
from tests.unit.controller.sql.world import World

LOBSTERS, VOTE = Path(lobsters.__file__).parent, Path(vote.__file__).parent
SCHEMAS = {
    "kinds": Path(__file__).parent / "schemas" / "kinds.sql",
    "lobsters_baseline": LOBSTERS / "schema_baseline.sql",
    "lobsters_natural": LOBSTERS / "schema_natural.sql",
    "vote_baseline": VOTE / "vote_baseline.sql",
    "vote_natural": VOTE / "vote_natural.sql",
}


def definitions(schema: str) -> list[str]:
    sql = SCHEMAS[schema].read_text()
    return [each for each in split_statements(sql) if leading_words(each)[0] in DEFINITIONS]


def built(schema: str) -> World:
    world = World()
    for statement in definitions(schema):
        try:
            world.run(statement)
        except Unsupported as error:
            assert "CREATE VIEW" in str(error)
    return world


@pytest.mark.parametrize("schema", SCHEMAS)
def test_show_create_reads_back_to_the_same_text(schema: str) -> None:
    world = built(schema)
    assert world.catalog.tables
    again = World()
    again.settings = type(again.settings)(foreign_key_checks=False)
    for table in world.catalog.tables.values():
        again.run(show_create_table(table))
        assert show_create_table(again.table(table.name)) == show_create_table(table)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_fresh_table_s_show_create_defines_an_equal_table(schema: str) -> None:
    world = built(schema)
    for table in world.catalog.tables.values():
        if len(table.formats) > 1 or table.foreign_keys:
            continue
        again = World().catalog
        [copy] = plan_definition(show_create_table(table), again, "db", world.settings).tables_put
        if table.version == 1 and table.name != "copied":
            assert _without_ids(copy) == _without_ids(table)


def _without_ids(table: Table) -> object:
    return (table.columns, table.primary_key, table.indexes, table.checks, table.options, table.comment, table.collation)


def _describe(column: TableColumn) -> tuple[Any, ...]:
    shown = type_text(column.type)
    if column.type.kind in INTEGERS or column.type.kind is Kind.YEAR:
        shown = shown.replace("(1)", "")
    default = None
    if column.default is not None:
        default = default_text(column.type, column.default)
    extra = "auto_increment" if column.auto_increment else ""
    return column.name, shown, column.nullable, default, extra, column.comment


def _described_by(mariadb: Any, table: str) -> list[tuple[Any, ...]]:
    mariadb.execute(
        "SELECT column_name, column_type, is_nullable, column_default, extra, column_comment, data_type"
        " FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
        (table,),
    )
    found = []
    for name, kind, nullable, default, extra, comment, data_type in mariadb.fetchall():
        if data_type in ("tinyint", "smallint", "mediumint", "int", "bigint", "year") and "zerofill" not in kind:
            kind = data_type + (" unsigned" if "unsigned" in kind else "")
        if kind == "longtext" and comment == "":
            kind = "longtext or json"
        if default in ("NULL", None) or "current_timestamp" in default:
            default = None
        elif default.startswith("'"):
            default = default[1:-1].replace("''", "'")
        elif "zerofill" in kind:
            default = default.zfill(int(kind[4:].partition(")")[0]))
        extra = "auto_increment" if "auto_increment" in extra else ""
        found.append((name, kind, nullable == "YES", default, extra, comment))
    return found


@pytest.mark.parametrize("schema", SCHEMAS)
def test_columns_and_keys_are_those_of_mariadb(schema: str, mariadb: MariaDB) -> None:
    world = built(schema)
    database = mariadb.fresh_database()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
        for statement in definitions(schema):
            cursor.execute(statement)
        for table in world.catalog.tables.values():
            ours = [_describe(column) for column in table.columns if not is_hidden(column)]
            ours = [(n, "longtext or json" if k in ("longtext", "json") else k, *rest) for n, k, *rest in ours]
            assert ours == _described_by(cursor, table.name), table.name
            assert _keys(table) == _keys_by(cursor, table.name), table.name


def _keys(table: Table) -> set[tuple[Any, ...]]:
    names = {column.id: column.name for column in table.columns}
    keys = [index for index in (table.primary_key, *table.indexes) if index.name != "GEN_CLUST_INDEX"]
    return {
        (index.name, index.unique, index.kind, tuple((names[part.column_id], part.prefix) for part in index.parts))
        for index in keys
    }


def _keys_by(cursor: Any, table: str) -> set[tuple[Any, ...]]:
    cursor.execute(
        "SELECT index_name, non_unique, index_type, column_name, sub_part FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND table_name = %s ORDER BY index_name, seq_in_index",
        (table,),
    )
    parts: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for name, non_unique, kind, column, prefix in cursor.fetchall():
        kind = "BTREE" if kind == "HASH" else kind
        parts.setdefault((name, not non_unique, kind), []).append((column, prefix if kind == "BTREE" else None))
    return {(*key, tuple(columns)) for key, columns in parts.items()}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_mariadb_shows_defines_the_same_columns_and_keys(schema: str, mariadb: MariaDB) -> None:
    """So that dumps made by MariaDB can be loaded."""
    world = built(schema)
    loaded = World(settings=type(world.settings)(sql_mode=frozenset(), foreign_key_checks=False))
    with mariadb.connect(mariadb.fresh_database()) as connection, connection.cursor() as cursor:
        for statement in definitions(schema):
            cursor.execute(statement)
        for table in world.catalog.tables.values():
            cursor.execute(f"SHOW CREATE TABLE `{table.name}`")
            [(_, shown)] = cursor.fetchall()
            loaded.run(shown)
            again = loaded.table(table.name)
            ours = [_describe(column) for column in table.columns]
            assert [(n, "json" if k == "longtext" else k, *r) for n, k, *r in map(_describe, again.columns)] == [
                (n, "json" if k == "longtext" else k, *r) for n, k, *r in ours
            ]
            assert _keys(again) == _keys(table)
