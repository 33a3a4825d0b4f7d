"""Nodes of random queries computed by the dataflow engine: the rows that evaluation from the tables gives."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import pytest

from backend.execution.embedded import open_embedded
from backend.execution.evaluation.reader import Run
from backend.execution.evaluation.readers import Readers
from backend.execution.execution import Execution
from backend.execution.local_store import LocalStore
from backend.execution.outcome import ResultSet
from backend.execution.statement_run import utc_now
from backend.execution.writes.numbers import Numbers
from controller.sql.plan import Query
from controller.sql.planner import plan
from controller.sql.settings import Settings
from dataflow.expressions.source import Key, key_function
from dataflow.plan.node import Base, Columns, bases_of
from dataflow.runtime.engine import Engine
from dataflow.values.modes import DEFAULT_MODES
from dataflow.values.result_limits import ResultSettings
from dataflow.values.types import Row
from tests.differential.queries import QueryGenerator
from tests.differential.query_tables import definitions

SETTINGS = Settings(collation="utf8mb4_general_ci", results=ResultSettings(collation="utf8mb4_general_ci"))
QUERIES = 60


class RowSource:
    """Base tables as lists of rows."""

    def __init__(self, bases: Iterable[Base], rows: dict[int, list[Row]]) -> None:
        self._types = {base.table: base.types for base in bases}
        self._rows = rows

    def lookup(self, table: int, columns: Columns, keys: Sequence[Key]) -> list[Iterable[Row]]:
        key_of = key_function(columns, self._types[table])
        return [[row for row in self._rows[table] if key_of(row) == key] for key in keys]

    def scan(self, table: int) -> Iterable[Row]:
        return self._rows[table]

    def is_indexed(self, table: int, columns: Columns) -> bool:
        return True


@pytest.mark.parametrize("seed", [1, 2])
def test_engine_and_evaluation_agree_on_random_queries(tmp_path: Path, seed: int) -> None:
    assert asyncio.run(_compared(tmp_path, seed)) > QUERIES // 2


async def _compared(folder: Path, seed: int) -> int:
    """How many queries were compared: those that depend on nothing but the tables."""
    random = Random(seed)
    statements, tables = definitions(random)
    database = await open_embedded(folder, shard_count=1)
    await database.define("CREATE DATABASE d", None, SETTINGS)
    for sql in statements:
        if sql.startswith("CREATE"):
            await database.define(sql, "d", SETTINGS)
        else:
            await database.execute(plan(sql, database.catalog, "d", SETTINGS, []))
    rows: dict[int, list[Row]] = {}
    for table in database.catalog.tables.values():
        found = await database.execute(plan(f"SELECT * FROM {table.name}", database.catalog, "d", SETTINGS, []))
        assert isinstance(found, ResultSet)
        rows[table.id] = found.rows
    compared = 0
    for statement in QueryGenerator(random, tables).statements(QUERIES):
        query = plan(statement.sql, database.catalog, "d", SETTINGS, []).statement
        if not isinstance(query, Query) or not query.shareable:
            continue
        compared += 1
        reader = Readers({table.id: table for table in query.tables}).reader(query.node, (), ())
        execution = Execution(database.begin(), (), DEFAULT_MODES, utc_now(), Numbers(database.store))
        engine = Engine(RowSource(bases_of(query.node), rows))
        view = engine.add_view(query.node, ())
        maintained = Counter(engine.upquery(view, [()])[0].rows)
        assert maintained == Counter(await reader.rows(Run(execution, {}), None)), statement.sql
    store = database.store
    assert isinstance(store, LocalStore)
    store.close()
    return compared
