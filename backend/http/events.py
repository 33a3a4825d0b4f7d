"""Server-sent events: the changes of a table or view, and the rows of a view's key as they change.

An event of changes has its epoch for an id. A browser, or anybody else, that lost the connection sends the last id as `Last-Event-ID`, and goes on
from there. What is said again and again is nothing, in a comment, so that a connection that is gone is noticed. A reader that takes
nothing holds up nobody but itself: what it has not been sent yet is still in the feed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from aiohttp import web

from backend.client.changes import ChangeReader
from backend.http.bodies import ChangedRows, Error, Failure, ListedRows
from backend.http.values import printable, to_json, without_surrogates
from dataflow.errors import Condition, MillraceError, Retryable

QUIET_S = 10.0
EVENTS_MAX = 500
"""So many may be listened to at once."""

_encode = msgspec.json.Encoder().encode

Event = tuple[str, str, msgspec.Struct]
"""(name, id, data)"""


class EventStreams:
    """The streams that are being sent, which end with the server."""

    def __init__(self) -> None:
        self._sending: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        for task in self._sending:
            task.cancel()

    async def send(self, request: web.Request, events: AsyncGenerator[Event, None]) -> web.StreamResponse:
        """Send events for as long as somebody listens."""
        if len(self._sending) >= EVENTS_MAX:
            raise Retryable(Condition.UNKNOWN_ERROR, "too many listen already")
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        try:
            async with aclosing(events):
                return await self._send(request, events)
        finally:
            self._sending.discard(task)

    async def _send(self, request: web.Request, events: AsyncGenerator[Event, None]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        coming = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                await asyncio.wait([coming], timeout=QUIET_S)
                if not coming.done():
                    await response.write(b": \n\n")
                    continue
                event = await _result(coming)
                if event is None:
                    return response
                await response.write(_text(event))
                if event[0] == "error":
                    return response
                coming = asyncio.ensure_future(anext(events, None))
        except ConnectionError:
            return response
        finally:
            coming.cancel()
            await asyncio.wait([coming])


async def changed(reader: ChangeReader, since: int) -> AsyncGenerator[Event, None]:
    """Where it begins, and what has changed after that."""
    yield "position", str(since), ChangedRows(list(reader.columns), since, [], [])
    async with aclosing(reader.read(since)) as found:
        async for each in found:
            rows = to_json([row for row, _ in each.rows])
            yield "changes", str(each.epoch), ChangedRows(list(reader.columns), each.epoch, rows, [weight for _, weight in each.rows])


async def of_key(columns: tuple[str, ...], subscribed: AsyncGenerator[Any, None]) -> AsyncGenerator[Event, None]:
    async with aclosing(subscribed):
        async for rows in subscribed:
            yield "rows", "", ListedRows(list(columns), to_json(rows))


async def _result(coming: asyncio.Future[Event | None]) -> Event | None:
    """The event, or the error that it has become."""
    try:
        return coming.result()
    except MillraceError as error:
        return "error", "", Failure(Error(error.condition.code, error.condition.sqlstate, printable(str(error))))


def _text(event: Event) -> bytes:
    name, number, body = event
    try:
        data = _encode(body)
    except UnicodeEncodeError:
        data = _encode(without_surrogates(msgspec.to_builtins(body)))
    head = f"event: {name}\n" + (f"id: {number}\n" if number else "")
    return head.encode() + b"data: " + data + b"\n\n"
