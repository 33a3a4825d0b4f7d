"""A transition as shard 0 carries it out: in slices, and answered when each of its views is there, or is known not to be there yet."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from backend.network.messages import Acknowledged, Message
from backend.network.program_messages import ChangeViews, ViewsChanged
from backend.network.transport import Peer
from backend.views.hosted_view import HostedView

SLICE_S = 0.003
"""For so long a worker's event loop is held by a transition."""


class Answering(Protocol):
    """Who is answered."""

    def send(self, message: Message, request: int = 0) -> None: ...


class ViewChange:
    """Takes the answers for the single views, by their places in the transition."""

    def __init__(self, peer: Peer, request: int, message: ChangeViews, views: Callable[[], Mapping[bytes, HostedView]]) -> None:
        self._peer = peer
        self._request = request
        self._views = views
        self._names = [each.view for each in message.added]
        self._left = len(self._names)
        self._there: list[bytes] = []
        if not self._left:
            self._answer()

    def send(self, message: Message, request: int = 0) -> None:
        if isinstance(message, Acknowledged):
            self._there.append(self._names[request])
        self._left -= 1
        if not self._left:
            self._answer()

    def _answer(self) -> None:
        views = self._views()
        self._peer.send(ViewsChanged({name: views[name].view.reason for name in self._there if name in views}), self._request)


class Slices:
    """What transitions have a worker do, a few milliseconds at a time, while it `may` be done."""

    def __init__(self, may: Callable[[], bool]) -> None:
        self._may = may
        self._steps: deque[Callable[[], None]] = deque()

    def extend(self, steps: Iterable[Callable[[], None]]) -> None:
        self._steps.extend(steps)

    def go_on(self) -> None:
        """Also to be called when it may be done again."""
        until = time.perf_counter() + SLICE_S
        while self._steps and self._may():
            self._steps.popleft()()
            if self._steps and time.perf_counter() > until:
                asyncio.get_running_loop().call_soon(self.go_on)
                return
