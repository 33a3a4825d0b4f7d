"""What this adapter has answered, statement by statement: plain integers that hot paths count up, and histograms.

Of those that shared memory answers at once, one in TIMED_EVERY is timed; all others are timed anyway. The figures of a
statement are computed when a client asks (see `backend.processes.statement_counts`).
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.execution.answering.advice import advice
from backend.execution.outcome import Answer, ResultSet
from backend.processes.statement_counts import EDGES_S, KindCount, StatementCount
from controller.sql.plan import Plan, Query
from controller.sql.text.lexer import leading_words
from dataflow.errors import MillraceError
from dataflow.values.types import Value

if TYPE_CHECKING:
    from mysql_adapter.database import DatabaseFace
    from mysql_adapter.sessions.session import Session

STATEMENTS_MAX = 1_000
PLANS_MAX = 4_000
TEXT_LENGTH_MAX = 4_000
VALUES_MAX = 1_000
"""Those of a longer statement are not kept."""
_LISTS = re.compile(r"\?/\*[^\w*]*(\d+)\*/")
"""How a template says that a mark stands for a list of so many values."""
TIMED_EVERY = 64
"""A power of two."""


class KindTotal:
    """Of all statements with this first word; what is forgotten of them stays here."""

    __slots__ = ("bins", "errors", "executed", "kind", "past", "seconds")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.executed = 0
        self.errors = 0
        self.seconds = 0.0
        self.bins = [0] * (len(EDGES_S) + 1)
        self.past = [0, 0, 0]
        """Hits, asked and evaluated of statements that are forgotten."""

    def took(self, seconds: float, times: int = 1) -> None:
        self.seconds += seconds * times
        self.bins[bisect_left(EDGES_S, seconds)] += times


class CountedStatement:
    """One statement. `hits` is for shortcuts to count up; see `backend.processes.statement_counts` for the rest."""

    __slots__ = ("asked", "bins", "database", "evaluated", "executed", "hits", "last", "longest_s", "plan", "seconds", "text", "total", "values")

    def __init__(self, database: str, text: str, total: KindTotal) -> None:
        self.database = database
        self.text = text
        self.total = total
        self.hits = self.asked = self.evaluated = self.executed = 0
        self.seconds = self.longest_s = self.last = 0.0
        self.bins: list[int] | None = None
        self.plan: Plan | None = None
        self.values: Sequence[Value] = ()

    def took(self, seconds: float, times: int = 1) -> None:
        self.seconds += seconds * times
        self.last = time.time()
        if seconds > self.longest_s:
            self.longest_s = seconds
        if self.bins is None:
            self.bins = [0] * (len(EDGES_S) + 1)
        self.bins[bisect_left(EDGES_S, seconds)] += times
        self.total.took(seconds, times)

    def run(self, seconds: float, failed: bool = False) -> None:
        """It was executed."""
        self.executed += 1
        self.total.executed += 1
        self.total.errors += failed
        self.took(seconds)

    def answered(self, answer: Answer) -> None:
        """A SELECT has its result, from a view or not."""
        if isinstance(answer, ResultSet) and answer.from_view:
            self.asked += 1
        else:
            self.evaluated += 1


class StatementCounts:
    def __init__(self) -> None:
        self._by_plan: dict[int, tuple[Plan, CountedStatement]] = {}
        self._by_text: dict[tuple[str, str], CountedStatement] = {}
        self._totals: dict[str, KindTotal] = {}

    def of(self, plan: Plan, sql: str, session: Session, values: Sequence[Value] | None = None, is_prepared: bool = False) -> CountedStatement:
        """The statement that `plan` is of; `values` are kept, to explain it with."""
        known = self._by_plan.get(id(plan))
        if known is None:
            known = self._learn(plan, sql, session, is_prepared)
        counted = known[1]
        if values is not None and len(values) <= VALUES_MAX and isinstance(plan.statement, Query):
            counted.plan, counted.values = plan, values
        return counted

    def _learn(self, plan: Plan, sql: str, session: Session, is_prepared: bool) -> tuple[Plan, CountedStatement]:
        name = (session.database or "", (sql if is_prepared else plan.text)[:TEXT_LENGTH_MAX])
        counted = self._by_text.get(name)
        if counted is None:
            if len(self._by_text) >= STATEMENTS_MAX:
                self._forget_half()
            counted = self._by_text[name] = CountedStatement(*name, self._total(sql))
        if len(self._by_plan) >= PLANS_MAX:
            self._by_plan.clear()
        known = self._by_plan[id(plan)] = (plan, counted)
        return known

    def _total(self, sql: str) -> KindTotal:
        word = (leading_words(sql) or ("other",))[0].lower()[:20]
        if word not in self._totals and len(self._totals) >= 50:
            word = "other"
        return self._totals.setdefault(word, KindTotal(word))

    def run_other(self, sql: str, seconds: float, failed: bool) -> None:
        """A statement was executed that has no plan."""
        total = self._total(sql)
        total.executed += 1
        total.errors += failed
        total.took(seconds)

    def _forget_half(self) -> None:
        ordered = sorted(self._by_text.items(), key=lambda item: item[1].last)
        for name, counted in ordered[: len(ordered) // 2]:
            past = counted.total.past
            past[0] += counted.hits
            past[1] += counted.asked
            past[2] += counted.evaluated
            counted.hits = counted.asked = counted.evaluated = 0
            del self._by_text[name]
        kept = set(map(id, self._by_text.values()))
        self._by_plan = {number: known for number, known in self._by_plan.items() if id(known[1]) in kept}

    # --- what is told

    def totals(self) -> list[KindCount]:
        sums = {kind: list(total.past) for kind, total in self._totals.items()}
        for each in self._by_text.values():
            found = sums[each.total.kind]
            found[0] += each.hits
            found[1] += each.asked
            found[2] += each.evaluated
        return [
            KindCount(kind, total.executed + hits, hits, asked, evaluated, total.errors, total.seconds, total.bins)
            for kind, total in self._totals.items()
            for hits, asked, evaluated in [sums[kind]]
        ]

    def statements(self, database: DatabaseFace) -> list[StatementCount]:
        return [_told(each, database) for each in list(self._by_text.values())]


def _told(counted: CountedStatement, database: DatabaseFace) -> StatementCount:
    views: list[bytes] = []
    why = ""
    plan = counted.plan
    if plan is not None and isinstance(plan.statement, Query):
        views = database.view_names(plan)
        if not views:
            try:
                explained = database.explain(plan, [*counted.values, *[None] * len(plan.facts)])
                why = explained.refusal or "it came once; a view is made when it comes again with the same constants"
            except (MillraceError, IndexError):  # a table is gone, or the values are those of another plan
                why = "what it reads has changed"
    return StatementCount(
        counted.database, _LISTS.sub(r"? /* \1 values */", counted.text), counted.total.kind, counted.executed + counted.hits, counted.hits, counted.asked,
        counted.evaluated, 0, counted.seconds, counted.longest_s, counted.last, counted.bins or [], views, why, advice(why),
    )  # fmt: skip
