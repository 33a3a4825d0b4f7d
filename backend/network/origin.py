"""The statement that a request or a log line belongs to, in every process.

An adapter names each statement and puts its `Origin` into the context of the task that executes it. If origins are told
(`tell_origins`), a request that is sent from such a context is preceded by its origin, and handled by the other process in that context; so what
that process logs, or asks of others in turn, has the same origin. With tracing on, the time from a request to its answer is a span.

While origins are not told, which is the default, connections are plain `Peer`s, and none of this is executed.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Origin:
    """`statement` is its id: connection and number of the command. `trace` is a W3C traceparent, empty without tracing."""

    statement: str
    trace: str = ""


class OpenSpan(Protocol):
    trace: str

    def end(self, attributes: dict[str, str | int], error: str = "") -> None: ...


class Spans(Protocol):
    def begin(self, name: str, parent: str, attributes: dict[str, str | int]) -> OpenSpan: ...


class Observers:
    """What is observed in this process."""

    is_told: bool = False
    spans: Spans | None = None


observers = Observers()
current: ContextVar[Origin | None] = ContextVar("origin", default=None)
