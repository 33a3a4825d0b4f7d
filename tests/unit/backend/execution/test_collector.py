"""Garbage collection while statements hold many rows."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from backend.execution.collector import _Holders, hold_off, let_go
from backend.execution.rows import LONG, Rows


@pytest.fixture
def thresholds(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, int]]:
    """Those of a process, which it sets after everything is imported. Event loops that ended before all was let go may hold off still."""
    monkeypatch.setattr(_Holders, "count", 0)
    before = gc.get_threshold()
    gc.set_threshold(60_000, 11, 12)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_the_thresholds_of_the_process_come_back(thresholds: tuple[int, int, int]) -> None:
    hold_off()
    hold_off()
    let_go()
    assert gc.get_threshold() != thresholds
    let_go()
    assert gc.get_threshold() == thresholds


def test_rows_that_are_let_go_are_no_new_objects() -> None:
    """A collection of new objects would visit them all."""

    async def dropped() -> bool:
        rows: Rows[object] = Rows()
        rows.add([(number,) for number in range(2 * LONG)])
        gc.collect()
        del rows
        return any(isinstance(each, Rows) and len(each) > LONG for each in gc.get_objects(generation=0))

    assert not asyncio.run(dropped())
