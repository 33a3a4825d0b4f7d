"""A server in a thread of its own, for tests with blocking drivers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import uvloop

from backend.execution.embedded import open_embedded
from backend.network.tls import Certificate
from backend.shared_memory.segment import FOLDER, SegmentNames
from mysql_adapter.server import Limits, Server

__all__ = ["Limits", "ServerThread", "sharing_server"]


class ServerThread:
    """`with ServerThread(database) as server:` serves on `server.port` until the end.

    `database` may be a coroutine function that opens one, for those that belong to an event loop.
    """

    def __init__(
        self,
        database: Any,
        tls: Certificate | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self._database = database
        self._options = {"tls": tls, "limits": limits, **options}
        self.port = 0
        self.server: Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> ServerThread:
        self._thread.start()
        self._ready.wait(10)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stop)
        self._thread.join(15)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """Begin to drain; to be called in the server's thread."""
        assert self._stop is not None
        self._stop.set()

    def call(self, function: Any) -> Any:
        """Run `function` in the server's thread and return what it returns."""

        async def run() -> Any:
            return function()

        return self.wait_for(run())

    def wait_for(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = 10.0) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout_s)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._main())
            except BaseException as failure:
                self._failure = failure
                self._ready.set()

    async def _main(self) -> None:
        database = self._database
        if callable(database):
            database = await database()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.server = Server(database, **self._options)
        self.port = await self.server.listen("127.0.0.1", 0)
        self._ready.set()
        await self._stop.wait()
        await self.server.close()


@contextmanager
def sharing_server(folder: Path) -> Iterator[ServerThread]:
    """A server over a database in `folder` whose views are in shared memory, of which nothing is left afterwards."""
    opened: list[Any] = []

    async def open_database() -> Any:
        opened.append(await open_embedded(folder, names=SegmentNames(str(folder), 0)))
        return opened[0]

    with ServerThread(open_database) as server:
        yield server
    opened[0].store.close()
    assert not list(FOLDER.glob(f"{SegmentNames(str(folder), 0).prefix}*"))
