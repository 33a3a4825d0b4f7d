"""The HTTP process's picture of the cluster: it asks workers and adapters for figures, and keeps them for some minutes.

Statements are those of the adapters, of the HTTP process itself, and of the clients of the library, which report theirs to shard 0.

Figures of the overview are asked for every SAMPLE_S, whether anybody looks or not: one small message a shard and one an adapter.
Views and nodes cost a worker more: they are asked for when a client looks, or when their number has changed, and only as often as
costs the worker 1 % of its time. Clients that look in between get the last answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from backend.clustering.cluster import Cluster
from backend.execution.counted_statements import Explaining, StatementCounts
from backend.http.shown import Moments
from backend.network.messages import ShardStatus
from backend.network.session_messages import AdapterAnswers, AskAdapters, AskReported
from backend.network.view_messages import HostedViews
from backend.processes.statement_counts import (
    EDGES_S,
    SLOW,
    STATEMENTS,
    TOTALS,
    KindCount,
    SlowStatement,
    StatementCount,
    StatementReport,
    merged_kinds,
    merged_statements,
    quantiles,
)
from dataflow.errors import MillraceError

SAMPLE_S = 2.0
SAMPLES_MAX = 450
SHARE_MAX = 0.01
"""Of a worker's time, for telling of its views."""
WRITES = frozenset({"insert", "update", "delete", "replace", "load"})
ANSWER_S = 5.0

T = TypeVar("T")
Hosted = list[tuple[int, HostedViews]]
log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode_report = msgspec.msgpack.Decoder(StatementReport).decode


@dataclass(frozen=True, slots=True)
class Picture:
    """The views of all shards at a moment (of time.time()), the picture before, and how long the slowest shard took for it."""

    moment: float
    hosted: Hosted
    took_s: float
    before: Picture | None


@dataclass(frozen=True, slots=True)
class _Sample:
    moment: float
    kinds: dict[str, KindCount]
    shards: list[ShardStatus | None]


class Observation:
    def __init__(self, cluster: Cluster, shard_count: int, own: StatementCounts, database: Explaining) -> None:
        """`own` are the statements of this process."""
        self._cluster = cluster
        self._shard_count = shard_count
        self._own, self._database = own, database
        self._last: _Sample | None = None
        self._moments: deque[tuple[Any, ...]] = deque(maxlen=SAMPLES_MAX)
        """As the columns of Moments."""
        self._picture: Picture | None = None
        self._drawing: asyncio.Task[Picture] | None = None
        self._sampling: asyncio.Task[None] | None = None
        self.pictured: Callable[[Picture], None] = lambda picture: None
        """Called with each new picture."""

    def start(self) -> None:
        self._sampling = asyncio.ensure_future(self._sample_on())

    def stop(self) -> None:
        for task in (self._sampling, self._drawing):
            if task is not None:
                task.cancel()

    # --- figures

    async def _sample_on(self) -> None:
        seen: object = None
        while True:
            try:
                await self._sample()
                assert self._last is not None
                views = [None if each is None else (each.views, each.catalog_version) for each in self._last.shards]
                if views != seen:
                    seen = views
                    await self.picture()
            except (MillraceError, OSError, TimeoutError) as error:
                log.debug("no sample: %s", error)
            except Exception:
                log.exception("no sample")
            await asyncio.sleep(SAMPLE_S)

    async def _sample(self) -> None:
        kinds, shards = await asyncio.gather(self.kinds(), asyncio.gather(*map(self._shard, range(self._shard_count))))
        before, self._last = self._last, _Sample(time.time(), kinds, list(shards))
        if before is not None:
            self._moments.append(_moment(before, self._last))

    async def _shard(self, shard: int) -> ShardStatus | None:
        with contextlib.suppress(MillraceError, OSError, TimeoutError):
            found: ShardStatus = await asyncio.wait_for(self._cluster.status(shard), ANSWER_S)
            return found
        return None

    def moments(self) -> Moments:
        """The rates between samples."""
        columns = zip(*self._moments) if self._moments else [[] for _ in Moments.__struct_fields__]
        return Moments(*map(list, columns))

    # --- statements

    async def kinds(self) -> dict[str, KindCount]:
        found, reports = await asyncio.gather(self._of_adapters((TOTALS,), list[KindCount]), self._reports())
        return merged_kinds([*found, *self._own.totals(), *(each for report in reports for each in report.kinds)])

    async def statements(self) -> list[StatementCount]:
        found, reports = await asyncio.gather(self._of_adapters((STATEMENTS,), list[StatementCount]), self._reports())
        own = self._own.statements(self._database)
        return merged_statements([*found, *own, *(each for report in reports for each in report.statements)])

    async def slow(self) -> list[SlowStatement]:
        found, reports = await asyncio.gather(self._of_adapters((SLOW,), list[SlowStatement]), self._reports())
        return sorted([*found, *self._own.slow, *(each for report in reports for each in report.slow)], key=lambda each: -each.moment)

    async def _reports(self) -> list[StatementReport]:
        """Of the clients of the library."""
        answer: AdapterAnswers = await asyncio.wait_for(self._cluster.ask(0, AskReported()), ANSWER_S)
        return [_decode_report(each) for each in answer.answers]

    # --- sessions

    async def sessions(self) -> list[list[Any]]:
        """Rows of PROCESSLIST."""
        return await self._of_adapters(("processes",), list[list[Any]])

    async def kill(self, number: int, query_only: bool, user: str | None) -> set[str]:
        """What the adapters say: done, denied or unknown. `user` is the only one whose connections may be killed."""
        answers = await self._ask_adapters(("kill", number, query_only, user))
        return {msgspec.msgpack.decode(each, type=str) for each in answers}

    async def _of_adapters(self, question: tuple[Any, ...], kind: type[list[T]]) -> list[T]:
        decoder = msgspec.msgpack.Decoder(kind)
        return [each for answer in await self._ask_adapters(question) for each in decoder.decode(answer)]

    async def _ask_adapters(self, question: tuple[Any, ...]) -> list[bytes]:
        answer: AdapterAnswers = await asyncio.wait_for(self._cluster.ask(0, AskAdapters(_encode(question))), 2 * ANSWER_S)
        return answer.answers

    # --- views

    async def picture(self) -> Picture:
        """The views as they are, or were a moment ago."""
        known = self._picture
        if known is not None and time.time() - known.moment < max(SAMPLE_S, known.took_s / SHARE_MAX):
            return known
        if self._drawing is None or self._drawing.done():
            self._drawing = asyncio.ensure_future(self._draw())
        return await asyncio.shield(self._drawing)

    async def _draw(self) -> Picture:
        hosted = await _answered(self._cluster.view_status())
        took_s = max((each.took_s for _, each in hosted), default=0.0)
        before = self._picture
        if before is not None:
            before = Picture(before.moment, before.hosted, before.took_s, None)
        self._picture = Picture(time.time(), hosted, took_s, before)
        self.pictured(self._picture)
        return self._picture


async def _answered(asked: Awaitable[T]) -> T:
    async with asyncio.timeout(2 * ANSWER_S):
        return await asked


def _moment(before: _Sample, after: _Sample) -> tuple[Any, ...]:
    seconds = max(after.moment - before.moment, 1e-3)
    grown = [_grown(before.kinds.get(kind), each) for kind, each in after.kinds.items()]
    bins = [sum(column) for column in zip(*[each.bins for each in grown])]
    hits, asked, evaluated = (sum(getattr(each, name) for each in grown) for name in ("hits", "asked", "evaluated"))
    writes = sum(each.count for each in grown if each.kind in WRITES)
    other = max(sum(each.count for each in grown) - hits - asked - evaluated - writes, 0)
    times_ms = [None if each is None else round(1000 * each, 4) for each in quantiles(bins, (0.5, 0.95, 0.99))]
    rates = [round(count / seconds, 2) for count in (hits, asked, evaluated, writes, other)]
    return (after.moment, *rates, *times_ms, sum(each.view_bytes for each in after.shards if each is not None))


def _grown(before: KindCount | None, after: KindCount) -> KindCount:
    """What has come since; all of it if they began anew."""
    if before is None or after.count < before.count:
        before = KindCount(after.kind, 0, 0, 0, 0, 0, 0.0, [0] * (len(EDGES_S) + 1))
    return KindCount(
        after.kind, after.count - before.count, after.hits - before.hits, after.asked - before.asked, after.evaluated - before.evaluated,
        after.errors - before.errors, after.seconds - before.seconds, [a - b for a, b in zip(after.bins, before.bins)],
    )  # fmt: skip
