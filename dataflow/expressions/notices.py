"""Notices: the warnings that evaluating an expression gives to the statement under way.

Conversions and operators only say it; who runs a statement listens, in its own task, and
tasks that it starts are heard as well. Where nobody listens, as in a worker, nothing is kept. A
statement that writes in strict mode cannot go on where a value was not what it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dataflow.errors import Condition, InvalidStatement

HEARD_MAX = 1024
"""As many as max_error_count keeps."""

Said = tuple[Condition, tuple[object, ...]]


class Heard(list[Said]):
    """With `strict`, what was wrong with a value is an error; a division by zero if it `refuses_division`. With `ignores`, some errors are
    warnings, as IGNORE says."""

    strict = False
    ignores = False
    refuses_division = False

    def __init__(self) -> None:
        super().__init__()
        self.of_constants: set[Said] = set()
        """What was said of constants that rows are compared with: once for all rows."""


_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


def listen(strict: bool = False, ignores: bool = False, refuses_division: bool = False) -> Heard:
    """From now on what this task evaluates says it here."""
    heard = Heard()
    heard.strict, heard.ignores, heard.refuses_division = strict, ignores, refuses_division
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
    refuses = heard.refuses_division if condition is Condition.DIVISION_BY_ZERO else heard.strict and condition is not Condition.UNKNOWN_ERROR
    if refuses:
        raise InvalidStatement(condition, *arguments)
    if len(heard) < HEARD_MAX:
        heard.append((condition, arguments))


def said_once(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function` of a constant: what it says is heard once in a statement, however many rows it is asked for."""

    def convert(value: Any) -> Any:
        heard = _heard.get()
        before = 0 if heard is None else len(heard)
        found = function(value)
        if heard is not None and len(heard) > before:
            new = [each for each in heard[before:] if each not in heard.of_constants]
            heard[before:] = new
            heard.of_constants.update(new)
        return found

    return convert
