"""The statement counts of an adapter, the HTTP process or a client, with a histogram of durations.

A *statement* is a template: a text with `?` for its values, in a database. Statements of the same kind (the first word) have
totals that outlive them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

EDGES_S = tuple(round(1e-5 * 10 ** (number / 6), 9) for number in range(43))
"""The upper ends of a histogram's bins, 10 µs to 100 s, six a decade; what takes longer is in one more."""

STATEMENTS, TOTALS, SLOW = "statements", "totals", "slow"
"""What an adapter may be asked for: statements as StatementCount, kinds as KindCount, slow ones as SlowStatement."""


class StatementCount(msgspec.Struct, array_like=True):
    """`hits` were answered from shared memory, `asked` by a worker's view, `evaluated` from the tables; writes are none of these.

    `seconds` and `bins` are of those that were executed, and of one hit in some, which stands for all of them.
    `why` a query is evaluated is empty where `views` answer it; `advice` is what would change that. `last_id` is the
    id, in logs and traces, of the last execution that shared memory did not answer.
    """

    database: str
    text: str
    kind: str
    count: int
    hits: int
    asked: int
    evaluated: int
    errors: int
    seconds: float
    longest_s: float
    last: float
    bins: list[int]
    views: list[bytes]
    why: str
    advice: str
    last_id: str = ""


class KindCount(msgspec.Struct, array_like=True):
    """All statements whose first word this is, since the process began."""

    kind: str
    count: int
    hits: int
    asked: int
    evaluated: int
    errors: int
    seconds: float
    bins: list[int]


class SlowStatement(msgspec.Struct, array_like=True):
    """When it ended, who sent it, and how long it took. `connection` is 0, and `id` empty, where there is none."""

    moment: float
    user: str
    host: str
    database: str
    connection: int
    seconds: float
    text: str
    id: str = ""


class StatementReport(msgspec.Struct, array_like=True):
    """What one process tells."""

    kinds: list[KindCount]
    statements: list[StatementCount]
    slow: list[SlowStatement]


def quantiles(bins: Sequence[int], wanted: Sequence[float]) -> list[float | None]:
    """Seconds below which these parts of a histogram are, each within its bin in proportion; None if it is empty."""
    total = sum(bins)
    return [None if not total else _quantile(bins, each * total) for each in wanted]


def _quantile(bins: Sequence[int], rank: float) -> float:
    below = 0
    for number, count in enumerate(bins):
        if count and below + count >= rank:
            low = 0.0 if number == 0 else EDGES_S[number - 1]
            high = EDGES_S[number] if number < len(EDGES_S) else 2 * EDGES_S[-1]
            return low + (high - low) * (rank - below) / count
        below += count
    return EDGES_S[-1]


def added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Two histograms as one; either may be empty."""
    if not one or not other:
        return list(one or other)
    return [a + b for a, b in zip(one, other)]


def merged_statements(found: Sequence[StatementCount]) -> list[StatementCount]:
    """The statements of several processes, each once."""
    merged: dict[tuple[str, str], StatementCount] = {}
    for each in found:
        known = merged.get((each.database, each.text))
        if known is None:
            merged[each.database, each.text] = each
            continue
        latest = max(known, each, key=lambda one: one.last)
        merged[each.database, each.text] = StatementCount(
            each.database, each.text, each.kind, known.count + each.count, known.hits + each.hits, known.asked + each.asked,
            known.evaluated + each.evaluated, known.errors + each.errors, known.seconds + each.seconds,
            max(known.longest_s, each.longest_s), latest.last, added(known.bins, each.bins),
            sorted({*known.views, *each.views}), latest.why, latest.advice, latest.last_id,
        )  # fmt: skip
    return list(merged.values())


def merged_kinds(found: Sequence[KindCount]) -> dict[str, KindCount]:
    merged: dict[str, KindCount] = {}
    for each in found:
        known = merged.get(each.kind)
        merged[each.kind] = each if known is None else KindCount(
            each.kind, known.count + each.count, known.hits + each.hits, known.asked + each.asked,
            known.evaluated + each.evaluated, known.errors + each.errors, known.seconds + each.seconds, added(known.bins, each.bins),
        )  # fmt: skip
    return merged
