"""Which entries a row has, and where they live."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dataflow.schema import Index, KeyPart
from dataflow.values.types import DOUBLE, INT, text
from persistence.key_encoding import KeyEncoding
from persistence.key_range import comparison_range
from persistence.layout import (
    Entry,
    TableWriter,
    index_prefix,
    index_ranges,
    row_prefix,
    shard_of,
    table_ranges,
    unique_prefix,
)
from tests.tables import table_of

PLAIN = Index(2, "plain", (KeyPart(3),))
UNIQUE = Index(3, "unique", (KeyPart(2), KeyPart(3)), unique=True)
WORDS = Index(4, "words", (KeyPart(2),), kind="FULLTEXT")
TABLE = table_of([INT, text(20, "utf8mb4_bin"), INT, DOUBLE], indexes=[PLAIN, UNIQUE, WORDS])
WRITER = TableWriter(TABLE)


def entries(row: tuple[int, str | None, int | None, float]) -> list[Entry]:
    return WRITER.entries(row, WRITER.row_key(row))


def test_a_row_is_stored_under_its_primary_key() -> None:
    rows = [(5, "a", 7, 1.5), (6, "b", None, 0.0)]
    stored = list(WRITER.stored_rows(rows))
    assert [key for key, _ in stored] == [WRITER.row_key(row) for row in rows]
    assert all(key.startswith(row_prefix(TABLE.id)) for key, _ in stored)
    assert [WRITER.decode(value) for _, value in stored] == rows


def test_plain_entries_live_with_the_row_and_unique_ones_by_their_own_key() -> None:
    row = (5, "a", 7, 1.5)
    plain, unique = entries(row)
    assert (plain.unique, plain.route) == (False, WRITER.row_key(row))
    assert plain.key.startswith(index_prefix(TABLE.id, PLAIN.id))
    assert (unique.unique, unique.route) == (True, unique.key)
    assert unique.key.startswith(unique_prefix(TABLE.id, UNIQUE.id))
    for entry in (plain, unique):
        assert WRITER.row_prefix + entry.value == WRITER.row_key(row)


def test_an_index_that_the_primary_key_begins_with_has_no_entries() -> None:
    primary = Index(1, "PRIMARY", (KeyPart(3), KeyPart(1)), unique=True)
    unique = Index(5, "unique", (KeyPart(3),), unique=True)
    descending = Index(6, "descending", (KeyPart(3, descending=True),))
    writer = TableWriter(replace(TABLE, primary_key=primary, indexes=(PLAIN, unique, descending)))
    row = (5, "a", 7, 1.5)
    assert [entry.index_id for entry in writer.entries(row, writer.row_key(row))] == [unique.id, descending.id]
    start, stop = comparison_range(KeyEncoding(writer.table, PLAIN), writer.row_prefix, (7,), ())
    assert start <= writer.row_key(row) < stop


def test_rows_with_the_same_unique_key_want_the_same_entry() -> None:
    assert entries((5, "a", 7, 1.5))[1].key == entries((6, "a", 7, 0.0))[1].key
    assert entries((5, "a", 7, 1.5))[0].key != entries((6, "a", 7, 0.0))[0].key


def test_a_unique_key_with_null_collides_with_nothing() -> None:
    first, second = entries((5, None, 7, 1.5))[1], entries((6, None, 7, 1.5))[1]
    assert not first.unique and not second.unique
    assert first.key != second.key
    assert first.route == WRITER.row_key((5, None, 7, 1.5))


def test_a_change_touches_only_the_entries_that_differ() -> None:
    old, new = (5, "a", 7, 1.5), (5, "b", 7, 2.5)
    key = WRITER.row_key(old)
    gone, come = WRITER.changed_entries(old, key, new, key)
    assert gone == [entries(old)[1]]
    assert come == [entries(new)[1]]


def test_a_change_of_the_primary_key_puts_the_unique_entry_in_place() -> None:
    old, new = (5, "a", 7, 1.5), (6, "a", 7, 1.5)
    gone, come = WRITER.changed_entries(old, WRITER.row_key(old), new, WRITER.row_key(new))
    assert gone == [entries(old)[0]]
    assert come == entries(new)


def test_an_index_lookup_finds_its_entries_and_no_others() -> None:
    index = WRITER.indexes[0]
    start, stop = comparison_range(index.encoding, index.prefix, (7,), ())
    found = [
        row
        for row in ((1, "a", 6, 0.0), (2, "a", 7, 0.0), (3, "b", 7, 0.0), (4, "a", 8, 0.0))
        if start <= entries(row)[0].key < stop
    ]
    assert [row[0] for row in found] == [2, 3]


def test_the_ranges_of_a_table_hold_all_its_keys() -> None:
    row = (5, "a", 7, 1.5)
    keys = [
        WRITER.row_key(row),
        *(entry.key for entry in entries(row)),
        *(entry.key for entry in entries((5, None, 7, 1.5))),
    ]
    for key in keys:
        assert sum(start <= key < stop for start, stop in table_ranges(TABLE.id)) == 1
        assert not any(start <= key < stop for start, stop in table_ranges(TABLE.id + 1))
    for entry in entries(row):
        assert any(start <= entry.key < stop for start, stop in index_ranges(TABLE.id, entry.index_id))


@pytest.mark.parametrize("shard_count", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("step", [1, 2, 64])
def test_shards_get_equal_shares_of_numbered_rows(shard_count: int, step: int) -> None:
    keys = WRITER.row_keys([(number * step, "", 0, 0.0) for number in range(20_000)])
    shares = Counter(shard_of(key, shard_count) for key in keys)
    assert sorted(shares) == list(range(shard_count))
    assert max(shares.values()) < 1.1 * 20_000 / shard_count


def test_a_key_stays_on_its_shard_for_ever() -> None:
    keys = WRITER.row_keys([(number, "", 0, 0.0) for number in range(12)])
    assert [shard_of(key, 4) for key in keys] == [0, 1, 3, 2, 0, 1, 3, 2, 0, 1, 3, 2]
