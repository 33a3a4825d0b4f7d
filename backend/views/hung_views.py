"""Views that hold up a worker: their names are left on file for the worker's successor.

The watchdog ends a worker whose event loop stands still. Its successor would host the same views and stand still again. So a
thread looks at what the loop runs once one turn has taken `HELD_S`, and writes down which views that code belongs to; a worker
that goes on takes its note back. Where views follow a large transaction in a thread, the loop goes on, but every writer
waits: if that takes much longer than it can, the worker names the views and ends itself. The successor sets the views in
the file aside (`backend.views.set_aside`). The file stays: who has mended the cause removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from backend.views.hosted_view import HostedView
from backend.views.set_aside import code_users

HELD_S = 5.0
LOOK_S = 1.0
FOLLOWED_ROW_S = 0.0005
"""A hundred times as long as a view takes to follow a change of one row."""
NAMES_MAX = 1_000

log = logging.getLogger(__name__)


class HungViews:
    """`names`: those that a predecessor has left. Threads may take `patience_s` longer than they should; for ever, if 0."""

    def __init__(self, path: Path, patience_s: float = 0.0) -> None:
        self._path = path
        self._patience_s = patience_s
        self._limit: tuple[int, float] | None = None
        self.names = _read(path)
        self._noted: frozenset[bytes] = frozenset()
        self._turn_at = time.monotonic()

    def watch(self, running: Callable[[FrameType], frozenset[bytes]]) -> None:
        """Watch the running event loop from a thread that ends with the process. `running` are the views whose code runs."""
        loop, watched = asyncio.get_running_loop(), threading.get_ident()

        def turn() -> None:
            self._turn_at = time.monotonic()
            if self._noted:
                self.note(frozenset())
            loop.call_later(LOOK_S, turn)

        def look() -> None:
            while True:
                time.sleep(LOOK_S)
                frames, now, limit = sys._current_frames(), time.monotonic(), self._limit
                if limit is not None and now > limit[1] and limit[0] in frames:
                    self.note(running(frames[limit[0]]))
                    log.critical("the views do not get to the end of a large transaction; the worker ends")
                    os._exit(1)
                if watched in frames and now - self._turn_at > HELD_S and not self._noted:
                    self.note(running(frames[watched]))

        turn()
        threading.Thread(target=look, name="hung views", daemon=True).start()

    @contextlib.contextmanager
    def limited(self, rows: int) -> Iterator[None]:
        """So many changed rows are followed in the calling thread, or the process ends."""
        if self._patience_s:
            self._limit = (threading.get_ident(), time.monotonic() + self._patience_s + rows * FOLLOWED_ROW_S)
        try:
            yield
        finally:
            self._limit = None

    def note(self, names: frozenset[bytes]) -> None:
        """The views that seem to hang now, besides those of before."""
        self._noted = names
        if names:
            log.warning("the worker stands still in view(s) %s", ", ".join(sorted(name.hex() for name in names)))
        with contextlib.suppress(OSError):  # a full disk: the successor then tries them again
            self._path.write_text("".join(f"{name.hex()}\n" for name in sorted(self.names | names)[:NAMES_MAX]))


def running(frame: FrameType, views: Mapping[bytes, HostedView]) -> frozenset[bytes]:
    """The views whose code, or whose key, is being worked on in `frame` or further out; the innermost that is known."""
    users = code_users(dict(views))
    for each in _outwards(frame):
        found = users.get(id(each.f_globals))
        if found:
            return frozenset(found)
        name = each.f_locals.get("name")
        if isinstance(name, bytes) and each.f_globals.get("__name__") == "backend.views.view_host":
            return frozenset({name})
    return frozenset()


def is_within(frame: FrameType, module: str) -> bool:
    """Whether `frame`, or one further out, is of the module."""
    return any(each.f_globals.get("__name__") == module for each in _outwards(frame))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _read(path: Path) -> frozenset[bytes]:
    try:
        return frozenset(bytes.fromhex(line) for line in path.read_text().split()[:NAMES_MAX])
    except (OSError, ValueError):
        return frozenset()
