"""Caches over values: results for short texts are kept, for long ones computed again.

A cache that is bounded by the number of its entries only would keep thousands of texts of any length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

LENGTH_MAX = 1000

Body = TypeVar("Body", bound=Callable[..., Any])


def kept_if_short(maxsize: int) -> Callable[[Body], Body]:
    """Like `lru_cache`, for functions of positional arguments; a text longer than LENGTH_MAX among them is not kept."""

    def decorate(body: Body) -> Body:
        kept = lru_cache(maxsize=maxsize)(body)

        @wraps(body)
        def apply(*arguments: Any) -> Any:
            for argument in arguments:
                if isinstance(argument, str) and len(argument) > LENGTH_MAX:
                    return body(*arguments)
            return kept(*arguments)

        return apply  # type: ignore[return-value]

    return decorate
