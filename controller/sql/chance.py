"""RAND, UUID and UUID_SHORT: another value for every row, so no view can keep it.

They are here because `dataflow`, where other functions are, leaves nothing to chance.
"""

from __future__ import annotations

import random
import uuid
from itertools import count

from dataflow.conversion import Domain
from dataflow.errors import Unsupported
from dataflow.expression import Expression, columns_of
from dataflow.functions.registry import function
from dataflow.types import BIGINT_UNSIGNED, DOUBLE, SqlType, text

_SEED_MAX = 0x3FFFFFFF
_short = count(random.getrandbits(62))


def _rand_type(arguments: tuple[Expression, ...]) -> SqlType:
    if arguments and not columns_of(arguments[0]):
        raise Unsupported("RAND(seed)")  # a sequence over the rows, in whatever order they are read
    return DOUBLE


@function("rand", arguments=(Domain.INTEGER,), optional=1, nulls=True, result=_rand_type, volatile=True)
def rand(*seed: int | None) -> float:
    """A number from 0 to 1; with a seed the first one that MySQL's generator gives after it."""
    if not seed:
        return random.random()
    low = (seed[0] or 0) & 0xFFFFFFFF
    one = ((low * 0x10001 + 55555555) & 0xFFFFFFFF) % _SEED_MAX
    two = ((low * 0x10000001) & 0xFFFFFFFF) % _SEED_MAX
    return (one * 3 + two) % _SEED_MAX / _SEED_MAX


@function("uuid", arguments=(), result=text(36), volatile=True)
def uuid_() -> str:
    return str(uuid.uuid1())


@function("uuid_short", arguments=(), result=BIGINT_UNSIGNED, volatile=True)
def uuid_short() -> int:
    return next(_short)
