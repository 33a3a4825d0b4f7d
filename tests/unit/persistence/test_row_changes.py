"""What is known of the rows that epochs have changed."""

from __future__ import annotations

from persistence.layout import row_prefix
from persistence.row_changes import KEYS_MAX, WATCHED_EPOCHS, RowChanges

ROWS = row_prefix(5)
OTHERS = row_prefix(6)


def test_nothing_has_changed_in_a_table_that_no_epoch_has_written_to() -> None:
    changes = RowChanges(10)
    changes.begin_epoch(11, [[OTHERS + b"a"]])
    assert changes.are_unchanged(ROWS + b"a", ROWS + b"z", 10)
    assert not changes.are_unchanged(OTHERS + b"a", OTHERS + b"b", 10)
    assert not changes.are_unchanged(ROWS + b"a", ROWS + b"z", 9), "what was before the beginning is not known"


def test_once_asked_for_only_the_rows_of_a_range_count() -> None:
    changes = RowChanges(10)
    changes.begin_epoch(11, [[ROWS + b"m"]])
    assert not changes.are_unchanged(ROWS + b"a", ROWS + b"c", 10), "which row it was is noted from now on"
    changes.begin_epoch(12, [[ROWS + b"m", OTHERS + b"b"]])
    assert changes.are_unchanged(ROWS + b"a", ROWS + b"m", 11)
    assert not changes.are_unchanged(ROWS + b"a", ROWS + b"m\0", 11)
    assert changes.are_unchanged(ROWS + b"a", ROWS + b"m\0", 12)
    assert not changes.are_unchanged(ROWS + b"a", ROWS + b"c", 10)


def test_an_epoch_that_may_change_anything_does() -> None:
    changes = RowChanges(10)
    assert changes.are_unchanged(ROWS, ROWS + b"z", 10)
    changes.begin_epoch(11, None)
    assert not changes.are_unchanged(ROWS, ROWS + b"z", 10)
    assert changes.are_unchanged(ROWS, ROWS + b"z", 11)


def test_of_many_changes_the_last_are_remembered() -> None:
    changes = RowChanges(0)
    assert changes.are_unchanged(ROWS, ROWS + b"z", 0)
    for epoch in range(1, 4):
        changes.begin_epoch(epoch, [[ROWS + b"m%d" % number for number in range(KEYS_MAX // 2)]])
        changes.are_unchanged(ROWS, ROWS + b"a", epoch - 1)
    assert not changes.are_unchanged(ROWS, ROWS + b"a", 0)
    assert changes.are_unchanged(ROWS, ROWS + b"a", 2)


def test_rows_that_nobody_asks_about_any_more_are_not_noted() -> None:
    changes = RowChanges(0)
    changes.are_unchanged(ROWS, ROWS + b"z", 0)
    changes.begin_epoch(WATCHED_EPOCHS + 1, [[ROWS + b"m"]])
    assert not changes._watched
    assert not changes.are_unchanged(ROWS, ROWS + b"a", 0)
