"""A statement is planned and run again while the catalog that it was planned with turns out to be out of date."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol, TypeVar

from backend.execution.transaction import SchemaChanged
from controller.catalog import Catalog
from dataflow.errors import Condition, InvalidStatement

T = TypeVar("T")

PATIENCE_S = 10.0
"""How long a statement is planned again while definitions change under it."""
PAUSE_S_MAX = 0.1
STALE = frozenset(
    {
        Condition.UNKNOWN_TABLE,
        Condition.UNKNOWN_COLUMN,
        Condition.UNKNOWN_DATABASE,
        Condition.VIEW_INVALID,
        Condition.TABLE_DEFINITION_CHANGED,
        Condition.ACCESS_DENIED_DB,
        Condition.TABLE_ACCESS_DENIED,
        Condition.SPECIFIC_ACCESS_DENIED,
    }
)
"""Errors that an outdated catalog may be the reason of."""


class KnowsCatalog(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    async def refresh_catalog(self) -> None: ...


async def with_fresh_catalog(database: KnowsCatalog, run: Callable[[], Awaitable[T]]) -> T:
    """What `run` returns, which reads the catalog of `database` itself; an error stays one if no newer catalog is there."""
    give_up = time.monotonic() + PATIENCE_S
    for number in count():
        before = database.catalog
        try:
            return await run()
        except (InvalidStatement, SchemaChanged) as error:
            if error.condition not in STALE or time.monotonic() > give_up:
                raise
            await database.refresh_catalog()
            if database.catalog is before:
                if not isinstance(error, SchemaChanged):
                    raise
                await asyncio.sleep(min(0.001 * 2**number, PAUSE_S_MAX))  # a worker has not heard of it yet
    raise SchemaChanged
