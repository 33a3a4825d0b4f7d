"""What evaluating an expression has to say besides its value: warnings of the statement under way.

Conversions and operators only say it; who runs a statement listens, in its own task, and
tasks that it starts are heard as well. Where nobody listens, as in a worker, nothing is kept.
"""

from __future__ import annotations

from contextvars import ContextVar

from dataflow.errors import Condition

HEARD_MAX = 1024
"""As many as max_error_count keeps."""

Said = tuple[Condition, tuple[object, ...]]

_heard: ContextVar[list[Said] | None] = ContextVar("heard", default=None)


def listen() -> list[Said]:
    """From now on what this task evaluates says it here."""
    heard: list[Said] = []
    _heard.set(heard)
    return heard


def ignore() -> None:
    _heard.set(None)


def is_silent() -> bool:
    """Whether nothing was said since this task listens."""
    return not _heard.get()


def say(condition: Condition, *arguments: object) -> None:
    heard = _heard.get()
    if heard is not None and len(heard) < HEARD_MAX:
        heard.append((condition, arguments))
