"""A connection that tells, and is told, which statement a request belongs to. See `backend.network.origin`."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

from backend.network import transport
from backend.network.messages import Failed, Message
from backend.network.origin import OpenSpan, Origin, Spans, current, observers
from backend.network.transport import Handler, Peer


class AttributedPeer(Peer):
    """Each request with an origin is sent right after it, with the same id."""

    def __init__(self, secret: bytes, handler: Handler, **options: Any) -> None:
        super().__init__(secret, self._attribute, **options)
        self._plain_handler = handler
        self._origins: dict[int, Origin] = {}
        self._spans: dict[int, OpenSpan] = {}

    async def ask(self, message: Message) -> Any:
        origin = current.get()
        if origin is not None:
            self.send(origin, self._next_request)
        return await super().ask(message)

    def _attribute(self, peer: Peer, request: int, message: Any) -> None:
        if isinstance(message, Origin):
            self._origins[request] = message
            return
        origin = self._origins.pop(request, None)
        if origin is None:
            self._plain_handler(peer, request, message)
            return
        if observers.spans is not None and origin.trace:
            span = self._spans[request] = observers.spans.begin(
                type(message).__name__, origin.trace, {"millrace.statement": origin.statement}
            )
            origin = Origin(origin.statement, span.trace)
        copy_context().run(self._handle, origin, request, message)

    def _handle(self, origin: Origin, request: int, message: Any) -> None:
        current.set(origin)
        self._plain_handler(self, request, message)

    def send(self, message: Message, request: int = 0) -> None:
        span = self._spans.pop(request, None)
        if span is not None:
            span.end({}, message.condition if isinstance(message, Failed) else "")
        super().send(message, request)

    def connection_lost(self, exception: Exception | None) -> None:
        for span in self._spans.values():
            span.end({}, "connection lost")
        self._spans.clear()
        super().connection_lost(exception)


def tell_origins(spans: Spans | None) -> None:
    """From now on connections tell origins. To be called before any is made."""
    observers.is_told = True
    observers.spans = spans
    transport.peer_class = AttributedPeer
