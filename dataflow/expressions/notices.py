"""What evaluating an expression has to say besides its value: warnings of the statement under way.

Conversions and operators only say it; who runs a statement listens, in its own task, and
tasks that it starts are heard as well. Where nobody listens, as in a worker, nothing is kept. A
statement that writes in strict mode cannot go on where a value was not what it should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dataflow.errors import Condition, InvalidStatement

HEARD_MAX = 1024
"""As many as max_error_count keeps."""

Said = tuple[Condition, tuple[object, ...]]


class Heard(list[Said]):
    """With `strict`, what was wrong with a value is an error. With `ignores`, some errors are warnings, as IGNORE says."""

    strict = False
    ignores = False


_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


def listen(strict: bool = False, ignores: bool = False) -> Heard:
    """From now on what this task evaluates says it here."""
    heard = Heard()
    heard.strict, heard.ignores = strict, ignores
    _heard.set(heard)
    return heard


def ignore() -> None:
    _heard.set(None)


@contextmanager
def overheard() -> Iterator[Heard]:
    """What is said meanwhile goes here, and to nobody else."""
    heard = Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def is_silent() -> bool:
    """Whether nothing was said since this task listens."""
    return not _heard.get()


def refuse(condition: Condition, *arguments: object) -> None:
    """An error, or under IGNORE a warning: then the caller goes on."""
    heard = _heard.get()
    if heard is None or not heard.ignores:
        raise InvalidStatement(condition, *arguments)
    say(condition, *arguments)


def say(condition: Condition, *arguments: object) -> None:
    heard = _heard.get()
    if heard is None:
        return
    if heard.strict and condition not in (Condition.DIVISION_BY_ZERO, Condition.UNKNOWN_ERROR):
        raise InvalidStatement(condition, *arguments)
    if len(heard) < HEARD_MAX:
        heard.append((condition, arguments))
