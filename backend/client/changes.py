"""The changes of a table or named view, and a view's key as it changes.

Changes come epoch by epoch. Who remembers the epoch of the last item that was dealt with goes on from there, however it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from backend.client.statements import Statements
from backend.client.values import Rows, row_converter
from backend.clustering.cluster import Cluster
from backend.feeds.feed_reading import (
    BYTES_MAX,
    SECONDS,
    WAIT_STEP_S,
    bounds,
    changes,
    forget_changes,
    keep_changes,
    next_position,
)
from backend.feeds.feed_source import FeedSource, feed_source, select_of
from controller.catalog import Catalog
from dataflow.errors import Retryable, Unsupported


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What one epoch has changed: rows, each with how many times it came, or went if that is negative."""

    epoch: int
    rows: list[tuple[Any, int]]


class ChangeReader:
    """`check` is told the source that is to be kept or forgotten, and may refuse it."""

    def __init__(self, statements: Statements, name: str, check: Callable[[FeedSource], None] = lambda source: None) -> None:
        self._statements = statements
        self._name = name
        self._check = check
        self.columns: tuple[str, ...] = ()

    async def keep(self, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> int:
        """Have changes kept from now on; the epoch after which they can be read."""
        source = await self._source()
        self._check(source)
        with self._statements.named():
            return (await keep_changes(self._cluster, source, seconds, bytes_max)).latest

    async def forget(self) -> None:
        source = await self._source()
        self._check(source)
        with self._statements.named():
            await forget_changes(self._cluster, source.feed)

    async def position(self) -> int:
        """The last epoch whose changes can be read now."""
        return (await bounds(self._cluster, await self._source())).latest

    async def check(self, since: int) -> None:
        """Raises what `read` would raise at once."""
        await next_position(self._cluster, await self._source(), since, 1)

    async def read(self, since: int | None = None, follow: bool = True) -> AsyncGenerator[ChangeSet, None]:
        """What has changed after epoch `since`, or from now on; and what will, if `follow`."""
        source = await self._source()
        position = (await bounds(self._cluster, source)).latest if since is None else since
        while True:
            try:
                async with contextlib.aclosing(self._epochs(source, position)) as found:
                    async for each in found:
                        yield each
                        position = each.epoch
            except Retryable:
                if not follow:
                    raise
            if not follow:
                return
            await asyncio.sleep(WAIT_STEP_S)
            if self._statements.database.catalog.version != source.catalog_version:
                source = await self._source()

    async def _epochs(self, source: FeedSource, since: int) -> AsyncGenerator[ChangeSet, None]:
        convert = row_converter([each.type for each in source.columns])
        rows: list[tuple[Any, int]] = []
        async with contextlib.aclosing(changes(self._cluster, source, since)) as found:
            async for each in found:
                shown: Any = [row for row, _ in each.changes]
                rows += zip(shown if convert is None else convert(shown), [weight for _, weight in each.changes])
                if each.is_last:
                    yield ChangeSet(each.epoch, rows)
                    rows = []

    async def _source(self) -> FeedSource:
        """What is read, if it may be."""

        async def plan(catalog: Catalog) -> FeedSource:
            self._statements.plan(select_of(self._name), (), catalog)
            return feed_source(catalog, self._statements.schema, self._name)

        source = await self._statements.with_catalog(plan)
        self.columns = tuple([each.name for each in source.columns])
        return source

    @property
    def _cluster(self) -> Cluster:
        store = self._statements.database.store
        if not isinstance(store, Cluster):
            raise Unsupported("changes where there is no cluster")
        return store


async def subscription(look_up: Callable[[], Awaitable[Rows]]) -> AsyncGenerator[Rows, None]:
    """The rows of a key as they are, and again each time they are others. What they were in between may be left out."""
    shown: Rows | None = None
    while True:
        with contextlib.suppress(Retryable):  # it is asked for again
            rows = await look_up()
            if rows != shown:
                shown = rows
                yield rows
        await asyncio.sleep(WAIT_STEP_S)
