"""The longest value that a function may give: max_allowed_packet, checked before the memory is taken.

A function whose result can be longer than its arguments is registered with a `size`: what its result will have at least, in
characters or bytes, computed from the arguments; the result is at most a few times that. `bounded` asks it first, and
measures the result afterwards. What is too long is NULL, with warning 1301. Long results are also reported (`dataflow.values.long_values`).

The limit is part of the expression: where the session for which a statement is planned has another than the
default, `dataflow.functions.call` wraps the call in "limited", so equal expressions have equal limits wherever they are
evaluated. The planner says what the session has set by `planning_for`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.values.long_values import LONG, weigh
from dataflow.values.types import DEFAULT_COLLATION

PACKET_BYTES_MAX = 64 << 20
DIVISION_DIGITS = 4

Size = Callable[..., int]


@dataclass(frozen=True, slots=True)
class ResultSettings:
    """What a session has set that changes the values of expressions; the planner puts it into them.

    `division_digits` is div_precision_increment, `week_format` default_week_format.
    """

    packet_bytes_max: int = PACKET_BYTES_MAX
    group_concat_bytes_max: int = 1024
    division_digits: int = DIVISION_DIGITS
    week_format: int = 0
    collation: str = DEFAULT_COLLATION
    """Of the connection: what texts have that are made of none."""
    utf8mb4_collation: str = DEFAULT_COLLATION
    """default_collation_for_utf8mb4."""
    locale: str = "en_US"
    """lc_time_names."""
    encryption_mode: str = "aes-128-ecb"
    """block_encryption_mode."""


DEFAULT_RESULTS = ResultSettings()
_planned: ContextVar[ResultSettings] = ContextVar("planned", default=DEFAULT_RESULTS)


def planned() -> ResultSettings:
    """Those of the session that a statement is being planned for."""
    return _planned.get()


@contextmanager
def planning_for(settings: ResultSettings) -> Iterator[None]:
    token = _planned.set(settings)
    try:
        yield
    finally:
        _planned.reset(token)


class TooLong(Exception):
    """Raised by a function that is given its limit, as soon as it knows."""


def say_too_long(name: str, bytes_max: int) -> None:
    say(Condition.RESULT_TOO_LONG, name, bytes_max)


def byte_length(value: str | bytes) -> int:
    return len(value) if isinstance(value, bytes) or value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def total(*values: Any) -> int:
    """The size of what its texts are put together to."""
    return sum([len(value) for value in values if isinstance(value, str | bytes)])


@lru_cache(maxsize=1024)
def bounded(name: str, body: Callable[..., Any], size: Size | None, bytes_max: int) -> Callable[..., Any]:
    """`body`, or NULL where its result would be longer; without `size` it is given `bytes_max`, and raises TooLong."""
    certain = bytes_max // 4  # so many characters are never too many bytes

    def apply(*arguments: Any) -> Any:
        try:
            if size is None:
                result = body(*arguments, bytes_max=bytes_max)
            elif size(*arguments) > bytes_max:
                raise TooLong
            else:
                result = body(*arguments)
            if result is None:
                return None
            length = len(result)
            if length > LONG:
                weigh(length)
            if length <= certain or byte_length(result) <= bytes_max:
                return result
        except TooLong:
            pass
        say_too_long(name, bytes_max)
        return None

    return apply
