"""CHECK TABLE reads what is stored: rows, entries, and whether they belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from backend.execution.embedded import open_embedded
from dataflow.commit.epoch_effects import PersistEpoch
from persistence.shard_store import ShardStore
from tests.wire.server import ServerThread

ROWS = 500


def served(folder: Path, statements: list[str]) -> list[Any]:
    """What the last statement gives, of a database that is open only meanwhile."""

    opened: list[Any] = []

    async def open_database() -> Any:
        opened.append(await open_embedded(folder, shard_count=2))
        return opened[0]

    with ServerThread(open_database) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        found = list(cursor.fetchall())
        connection.close()
    opened[0].store.close()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = ",".join(f"({n}, {n % 7}, {n}, {'NULL' if n % 5 == 0 else n})" for n in range(ROWS))
    found = served(
        tmp_path,
        [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT, c INT, KEY (a), UNIQUE (b), UNIQUE (c), KEY ab ((a + b)))",
            f"INSERT INTO d.t VALUES {rows}",
            "DELETE FROM d.t WHERE id % 10 = 3",
            "UPDATE d.t SET a = a + 1, b = b + 10000 WHERE id % 4 = 0",
            "CHECK TABLE d.t, d.none",
        ],
    )
    assert found == [
        ("d.t", "check", "status", "OK"),
        ("d.none", "check", "Error", "Table 'd.none' doesn't exist"),
        ("d.none", "check", "status", "Operation failed"),
    ]
    return tmp_path


def change(folder: Path, kind: bytes, pick: Callable[[list[bytes]], dict[bytes, bytes | None]]) -> None:
    """Write what `pick` makes of the keys of one kind to shard 0, past everything that keeps them in step."""
    path = folder / "shard-0"
    store = ShardStore(path)
    keys = [key for chunk in store.view().scan(kind, kind + b"\xff") for key, _, _ in chunk]
    store.persist_epoch(PersistEpoch(store.epoch + 1, pick(keys), [], {}, None, True))
    store.close()


def check(folder: Path) -> list[tuple[str, str]]:
    return [(kind, text) for _, _, kind, text in served(folder, ["CHECK TABLE d.t"])]


def test_an_index_entry_that_is_missing_is_found(folder: Path) -> None:
    change(folder, b"i", lambda keys: {keys[0]: None, keys[1]: None})
    *wrong, last = check(folder)
    assert last == ("error", "Corrupt")
    assert [kind for kind, _ in wrong] == ["Warning", "Warning"] and "lacks the entries of 2 rows" in wrong[0][1]


def test_a_unique_entry_that_names_another_row_is_found(folder: Path) -> None:
    change(folder, b"u", lambda keys: {keys[0]: b"\x01\x80\x00\x00\x00\x00\x00\x00\x01"})
    assert ("error", "Corrupt") in check(folder)


def test_a_row_that_is_missing_is_found(folder: Path) -> None:
    change(folder, b"r", lambda keys: {keys[3]: None})
    *wrong, last = check(folder)
    assert last == ("error", "Corrupt")
    assert {text.split("'")[1] for _, text in wrong} == {"a", "b", "c", "ab"}
    assert f"contains {ROWS * 9 // 10} entries, should be {ROWS * 9 // 10 - 1}." in wrong[0][1]


def test_a_row_that_does_not_decode_is_found(folder: Path) -> None:
    change(folder, b"r", lambda keys: {keys[3]: b"\xc1nonsense"})
    assert check(folder)[-1] == ("error", "Corrupt")


def test_a_damaged_block_is_found_and_other_tables_are_fine(folder: Path) -> None:
    served(folder, ["CREATE TABLE d.other (id INT PRIMARY KEY)", "INSERT INTO d.other VALUES (1), (2)"])
    path = folder / "shard-0"
    ShardStore(path).close()  # the log becomes a table
    table = max(path.glob("*.ldb"), key=lambda each: each.stat().st_size)
    data = bytearray(table.read_bytes())
    data[data.index(b"r\0\0\0")] ^= 1
    table.write_bytes(data)
    [(kind, text), last] = check(folder)
    assert (kind, last) == ("Warning", ("error", "Corrupt")) and "checksum" in text
