"""Rows that are found by an index are those that have the key, whichever way they are read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dataflow.expressions.source import key_function
from dataflow.schema import Index, KeyPart
from dataflow.values.types import INT, Row, text
from persistence.files.database import LevelDatabase
from persistence.layout import TableWriter
from persistence.table_source import TableSource
from persistence.view import FIRST_CHUNK_ROWS, VERSION_BYTES, StateView
from tests.tables import table_of

WORDS = ("a", "A", "b", "ß", "ss", "a\0", "", "ab", "\U0001f600")
INDEXES = [
    Index(2, "plain", (KeyPart(2),)),
    Index(3, "pair", (KeyPart(3), KeyPart(2)), unique=True),
    Index(4, "one", (KeyPart(4, descending=True),), unique=True),
]


@pytest.mark.parametrize("nullable", [True, False])
def test_rows_found_by_an_index_are_those_with_the_key(tmp_path: Path, nullable: bool) -> None:
    types = (INT, text(20, "utf8mb4_general_ci"), INT, INT)
    table = table_of(types, indexes=INDEXES, nullable=nullable)
    writer, choices = TableWriter(table), random.Random(4)
    database = LevelDatabase(tmp_path / "rows", fsync=False)
    batch, rows, taken = database.batch(), list[Row](), set[object]()
    pair_of = key_function((1, 2), types)
    for number in range(400):
        word = None if nullable and choices.random() < 0.2 else choices.choice(WORDS)
        group = None if nullable and choices.random() < 0.2 else choices.randint(-2, 60)
        row: Row = (number, word, group, None if nullable and number % 3 == 0 else number * 7 - 1000)
        if word is not None and group is not None:
            if pair_of(row) in taken:
                continue
            taken.add(pair_of(row))
        rows.append(row)
        row_key = writer.row_key(row)
        batch.put(row_key, bytes(VERSION_BYTES) + writer.encode(row))
        for entry in writer.entries(row, row_key):
            batch.put(entry.key, bytes(VERSION_BYTES) + entry.value)
    database.write(batch)
    source = TableSource(StateView(database.now, 1))
    source.learn(table)
    most = 0
    for columns in ((0,), (1,), (2,), (1, 2), (3,)):
        assert source.is_indexed(table.id, columns)
        key_of = key_function(columns, types)
        wanted: dict[object, list[Row]] = {}
        for row in rows:
            wanted.setdefault(key_of(row), []).append(row)
        absent = [key_of((100_000, "zz", 99, 100_000))]
        keys = [*wanted, *absent]
        found = source.lookup(table.id, columns, keys)
        assert [sorted(each, key=str) for each in found] == [sorted(wanted.get(key, []), key=str) for key in keys]
        most = max(most, *map(len, wanted.values()))
    assert not nullable or most > FIRST_CHUNK_ROWS  # more than are read at once
    database.close(is_clean=True)
