"""The search for the highest load within a bound."""

from __future__ import annotations

import pytest

from backend.bench.load_search import LoadPoint, best, climb, quantile


def system(capacity: float, spoiled: frozenset[int] = frozenset()) -> tuple[list[float], object]:
    """A system that is slow beyond its capacity, and at the measurements that something else spoils."""
    asked: list[float] = []

    def measure(rate: float) -> LoadPoint:
        asked.append(rate)
        slow = rate > capacity or len(asked) in spoiled
        return LoadPoint(rate, min(rate, capacity), 1.0, float("inf") if slow else 2.0, 1.0, 1.0)

    return asked, measure


def test_loads_double_until_one_is_too_much_and_are_refined_between() -> None:
    asked, measure = system(10_000)
    points = climb(measure, (1_000, 1e9), 100, 2)  # type: ignore[arg-type]
    assert asked[:5] == [1_000, 2_000, 4_000, 8_000, 16_000]
    assert asked[5] == pytest.approx(11_313.7, abs=0.1) and asked[6] == pytest.approx(9_513.7, abs=0.1)
    found = best(points, 100)
    assert found is not None and found.offered == pytest.approx(9_513.7, abs=0.1)


def test_a_load_that_is_carried_at_a_second_attempt_is_carried() -> None:
    asked, measure = system(10_000, frozenset({2}))
    climb(measure, (1_000, 1e9), 100, 0, attempts=2)  # type: ignore[arg-type]
    assert asked == [1_000, 2_000, 2_000, 4_000, 8_000, 16_000, 16_000]


def test_a_system_that_cannot_carry_the_first_load_gets_less() -> None:
    asked, measure = system(30)
    points = climb(measure, (1_000, 1e9), 100, 0)  # type: ignore[arg-type]
    assert asked == [1_000, 250, 62.5, 15.625]
    found = best(points, 100)
    assert found is not None and found.answered == 15.625


def test_no_load_is_higher_than_the_highest() -> None:
    asked, measure = system(1e12)
    climb(measure, (1_000, 5_000), 100, 3)  # type: ignore[arg-type]
    assert asked == [1_000, 2_000, 4_000]


def test_what_was_never_answered_has_no_quantile() -> None:
    assert quantile([90, 6, 4], [0.001, 0.01], 0.95) == 0.01
    assert quantile([90, 4, 6], [0.001, 0.01], 0.95) == float("inf")
