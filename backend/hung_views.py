"""Views that hold up a worker's event loop: their names are left on file for the worker's successor.

The watchdog ends a worker whose event loop stands still. Its successor would host the same views and stand still again. So a
thread looks at what the loop runs once one turn has taken `HELD_S`, and writes down which views that code belongs to; a worker
that goes on takes its note back. The successor sets the views in the file aside (`backend.set_aside`). The file stays:
who has mended the cause removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from backend.hosted_view import HostedView
from backend.set_aside import code_users

HELD_S = 5.0
LOOK_S = 1.0
NAMES_MAX = 1_000

log = logging.getLogger(__name__)


class HungViews:
    """`names`: those that a predecessor has left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = _read(path)
        self._noted: frozenset[bytes] = frozenset()
        self._turn_at = time.monotonic()

    def watch(self, views: Callable[[], Mapping[bytes, HostedView]]) -> None:
        """Watch the running event loop from a thread that ends with the process."""
        loop, watched = asyncio.get_running_loop(), threading.get_ident()

        def turn() -> None:
            self._turn_at = time.monotonic()
            if self._noted:
                self.note(frozenset())
            loop.call_later(LOOK_S, turn)

        def look() -> None:
            while True:
                time.sleep(LOOK_S)
                frame = sys._current_frames().get(watched)
                if frame is not None and time.monotonic() - self._turn_at > HELD_S and not self._noted:
                    self.note(running(frame, views()))

        turn()
        threading.Thread(target=look, name="hung views", daemon=True).start()

    def note(self, names: frozenset[bytes]) -> None:
        """The views that seem to hang now, besides those of before."""
        self._noted = names
        if names:
            log.warning("the event loop stands still in view(s) %s", ", ".join(sorted(name.hex() for name in names)))
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
        if isinstance(name, bytes) and each.f_globals.get("__name__") == "backend.view_host":
            return frozenset({name})
    return frozenset()


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _read(path: Path) -> frozenset[bytes]:
    try:
        return frozenset(bytes.fromhex(line) for line in path.read_text().split()[:NAMES_MAX])
    except (OSError, ValueError):
        return frozenset()
