"""Reports of a library client's statements to shard 0, for the page and the metrics.

A report has all figures since the client began. One is sent every REPORT_S in which something was run, every AGAIN_S in any case, as
shard 0 may have been started again, and one when the client closes. Nobody waits for it, and one that is lost is made up for by the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

import msgspec

from backend.clustering.cluster import Cluster
from backend.execution.counted_statements import StatementCounts
from backend.execution.database import Database
from backend.network.session_messages import StatementsReported
from dataflow.errors import MillraceError

REPORT_S = 2.0
AGAIN_S = 30.0
LAST_REPORT_S = 1.0
STATEMENTS_MAX = 200

_encode = msgspec.msgpack.Encoder().encode


class StatementReports:
    def __init__(self, cluster: Cluster, database: Database, counts: StatementCounts) -> None:
        self._cluster = cluster
        self._database = database
        self._counts = counts
        self._client = os.urandom(8)
        self._reported = 0
        self._task = asyncio.ensure_future(self._report_on())

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(MillraceError, OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(LAST_REPORT_S):
                await self._report()

    async def _report_on(self) -> None:
        loop = asyncio.get_running_loop()
        again = loop.time() + AGAIN_S
        while True:
            await asyncio.sleep(REPORT_S)
            if loop.time() >= again:
                self._reported, again = 0, loop.time() + AGAIN_S
            with contextlib.suppress(MillraceError, OSError):
                await self._report()

    async def _report(self) -> None:
        count = sum(each.count for each in self._counts.totals())
        if count != self._reported:
            report = _encode(self._counts.report(self._database, STATEMENTS_MAX))
            await self._cluster.ask_now(0, StatementsReported(self._client, report))
            self._reported = count
