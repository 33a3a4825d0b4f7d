"""The statements that this process has run, or answered: plain integers that hot paths count up, and histograms.

Adapters, the HTTP process and clients of the library each count their own. Of reads that shared memory answers at once one in
many is timed, all other statements are. The figures of a statement are computed when somebody asks (see
`backend.processes.statement_counts`).
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from backend.execution.answering.advice import advice
from backend.execution.explaining.explanation import Explained
from backend.execution.outcome import Answer, ResultSet
from backend.processes.statement_counts import (
    EDGES_S,
    KindCount,
    SlowStatement,
    StatementCount,
    StatementReport,
    added,
)
from controller.sql.plan import Plan, Query
from controller.sql.planner import KEPT_LENGTH_MAX
from controller.sql.text.lexer import leading_words
from dataflow.errors import MillraceError
from dataflow.values.types import Value

STATEMENTS_MAX = 1_000
PLANS_MAX = 4_000
TEXT_LENGTH_MAX = 4_000
VALUES_MAX = 1_000
"""Those of a longer statement are not kept."""
_LISTS = re.compile(r"\?/\*[^\w*]*(\d+)\*/")
"""How a template says that a mark stands for a list of so many values."""
SLOW_S = 0.1
"""Statements that take this long are remembered, the last SLOW_MAX of them."""
SLOW_MAX = 200


class Explaining(Protocol):
    """What of a database tells how statements are answered."""

    def explain(self, plan: Plan, parameters: Sequence[Value]) -> Explained: ...

    def view_names(self, plan: Plan) -> list[bytes]: ...


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
    """One statement. `hits` is for those to count up who answer from shared memory; see `backend.processes.statement_counts` for the rest.

    A lookup of the client library has the name of its `view`, all others the last `plan` and its `values`.
    """

    __slots__ = (
        "_hit_s", "_hits_timed", "_refused", "asked", "bins", "database", "evaluated", "executed", "hits", "last", "last_id", "longest_s", "plan",
        "seconds", "text", "total", "values", "view",
    )  # fmt: skip

    def __init__(self, database: str, text: str, total: KindTotal) -> None:
        self.database = database
        self.text = text
        self.total = total
        self.hits = self.asked = self.evaluated = self.executed = 0
        self._hits_timed, self._hit_s = 0, 0.0
        self.seconds = self.longest_s = self.last = 0.0
        self.last_id = ""
        self.bins: list[int] | None = None
        self.plan: Plan | None = None
        self.values: Sequence[Value] = ()
        self.view: bytes | None = None
        self._refused: tuple[Plan, str] | None = None

    def took(self, seconds: float, times: int = 1) -> None:
        self.seconds += seconds * times
        self.last = time.time()
        if seconds > self.longest_s:
            self.longest_s = seconds
        if self.bins is None:
            self.bins = [0] * (len(EDGES_S) + 1)
        self.bins[bisect_left(EDGES_S, seconds)] += times
        self.total.took(seconds, times)

    def hit_took(self, seconds: float) -> None:
        """A hit was timed: it stands for all hits since the last one that was."""
        self.took(seconds, self.hits - self._hits_timed)
        self._hits_timed, self._hit_s = self.hits, seconds

    def run(self, seconds: float, failed: bool = False, name: str = "") -> None:
        """It was executed; `name` is the execution's id, see `backend.network.origin`."""
        self.last_id = name
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

    def leave(self) -> None:
        """It is forgotten: what it has counted stays with its kind. Who still holds it may go on counting, for nobody."""
        past = self.total.past
        past[0] += self.hits
        past[1] += self.asked
        past[2] += self.evaluated
        self.hits = self.asked = self.evaluated = self._hits_timed = 0

    def told(self, database: Explaining) -> StatementCount:
        seconds, bins, untimed = self.seconds, self.bins or [], max(self.hits - self._hits_timed, 0)
        if untimed and self._hits_timed:
            rest = [0] * len(bins)
            rest[bisect_left(EDGES_S, self._hit_s)] = untimed
            seconds, bins = seconds + untimed * self._hit_s, added(bins, rest)
        views, why = self._answered_by(database)
        return StatementCount(
            self.database, _LISTS.sub(r"? /* \1 values */", self.text), self.total.kind, self.executed + self.hits, self.hits, self.asked,
            self.evaluated, 0, seconds, self.longest_s, self.last, bins, views, why, advice(why), self.last_id,
        )  # fmt: skip


    def _answered_by(self, database: Explaining) -> tuple[list[bytes], str]:
        """The views that answer a SELECT, or why none does; the refusal of a plan is worked out once."""
        plan = self.plan
        if self.view is not None:
            return [self.view], ""
        if plan is None or not isinstance(plan.statement, Query):
            return [], ""
        views = database.view_names(plan)
        if views:
            return views, ""
        if self._refused is not None and self._refused[0] is plan:
            return [], self._refused[1]
        try:
            refusal = database.explain(plan, [*self.values, *[None] * len(plan.facts)]).refusal
        except (MillraceError, IndexError):  # a table is gone, or the values are those of another plan
            return [], "the tables that it reads have changed"
        if not refusal:
            return [], "it came once; a view is made when it comes again with the same constants"
        self._refused = plan, refusal
        return [], refusal


class StatementCounts:
    def __init__(self) -> None:
        self._by_plan: dict[int, tuple[Plan, CountedStatement]] = {}
        self._by_text: dict[tuple[str, str], CountedStatement] = {}
        self._totals: dict[str, KindTotal] = {}
        self.slow: deque[SlowStatement] = deque(maxlen=SLOW_MAX)
        """The statements that took SLOW_S or longer, the latest last."""

    def of(
        self, plan: Plan, sql: str, database: str | None, values: Sequence[Value] | None = None, is_prepared: bool = False
    ) -> CountedStatement:
        """The statement that `plan` is of; `values` are kept, to explain it with."""
        known = self._by_plan.get(id(plan))
        if known is None:
            known = self._learn(plan, sql, database, is_prepared)
        counted = known[1]
        if values is not None and len(values) <= VALUES_MAX and isinstance(plan.statement, Query):
            counted.plan, counted.values = plan, values
        return counted

    def of_view(self, sql: str, database: str | None, view: bytes) -> CountedStatement:
        """The lookups of a SELECT whose `?` are its keys."""
        counted = self._of_text(sql, sql, database)
        counted.view = view
        return counted

    def _learn(self, plan: Plan, sql: str, database: str | None, is_prepared: bool) -> tuple[Plan, CountedStatement]:
        counted = self._of_text(sql if is_prepared else plan.text, sql, database)
        if len(self._by_plan) >= PLANS_MAX:
            self._by_plan.clear()
        known = (plan, counted)
        if len(plan.text) <= KEPT_LENGTH_MAX:
            self._by_plan[id(plan)] = known
        return known

    def _of_text(self, text: str, sql: str, database: str | None) -> CountedStatement:
        name = (database or "", text[:TEXT_LENGTH_MAX])
        counted = self._by_text.get(name)
        if counted is None:
            if len(self._by_text) >= STATEMENTS_MAX:
                self._forget_half()
            counted = self._by_text[name] = CountedStatement(*name, self._total(sql))
        return counted

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
            counted.leave()
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

    def statements(self, database: Explaining) -> list[StatementCount]:
        return [each.told(database) for each in list(self._by_text.values())]

    def report(self, database: Explaining, statements_max: int) -> StatementReport:
        """All there is to tell; of the statements, those that took most time."""
        ordered = sorted(self._by_text.values(), key=lambda each: -each.seconds)
        return StatementReport(self.totals(), [each.told(database) for each in ordered[:statements_max]], list(self.slow))

