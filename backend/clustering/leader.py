"""The leading controller as other processes ask it about the program.

What it is asked may be asked twice without harm. While nobody leads, nobody waits: views are made later, and queries evaluated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from backend.network.messages import Message, NotLeading
from backend.network.program_messages import (
    AddView,
    AskTransitions,
    MaintainViews,
    PlanView,
    ShownTransition,
    ViewPlan,
)
from backend.network.transport import Peer
from dataflow.errors import MillraceError

TRIES = 2
"""A connection may be to one that led a moment ago."""


class Planner(Protocol):
    """Who plans the program; see `backend.processes.program_keeper.ProgramKeeper`."""

    async def maintain(self, views: list[AddView]) -> list[bytes]:
        """Have these in the program; those of them that the workers have then."""
        ...

    async def plan(self, view: AddView) -> ViewPlan | None: ...

    async def transitions(self) -> list[ShownTransition]: ...


class LeadingController:
    """`connect` finds it; None while nobody leads."""

    def __init__(self, connect: Callable[[], Awaitable[Peer | None]]) -> None:
        self._connect = connect
        self._peer: Peer | None = None
        self._connecting = asyncio.Lock()

    async def peer(self) -> Peer | None:
        """A connection to it, as far as is known."""
        async with self._connecting:
            if self._peer is None or self._peer.lost:
                self._peer = await self._connect()
            return self._peer

    def leave(self, peer: Peer) -> None:
        """It does not lead any more."""
        peer.close()
        if self._peer is peer:
            self._peer = None

    def close(self) -> None:
        if self._peer is not None:
            self.leave(self._peer)

    async def _ask(self, message: Message) -> Any:
        """None if nobody leads."""
        for _ in range(TRIES):
            peer = await self.peer()
            if peer is None:
                return None
            try:
                answer = await peer.ask(message)
            except ConnectionError:
                answer = NotLeading()
            except MillraceError:
                return None  # it cannot record anything at the moment
            if not isinstance(answer, NotLeading):
                return answer
            self.leave(peer)
        return None

    async def maintain(self, views: list[AddView]) -> list[bytes]:
        answer = await self._ask(MaintainViews(views))
        return [] if answer is None else list(answer.views)

    async def plan(self, view: AddView) -> ViewPlan | None:
        found: ViewPlan | None = await self._ask(PlanView(view))
        return found

    async def transitions(self) -> list[ShownTransition]:
        answer = await self._ask(AskTransitions())
        return [] if answer is None else list(answer.transitions)
