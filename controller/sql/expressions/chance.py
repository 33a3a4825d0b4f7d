"""RAND, UUID, UUID_SHORT and RANDOM_BYTES: another value for every row, so no view can keep it.

With a seed, RAND is what MySQL's generator gives: for a constant one number after the other, in the order in which
rows are read; for a column the first number after each row's seed.

They are here because `dataflow`, where other functions are, leaves nothing to chance.
"""

from __future__ import annotations

import os
import random
import uuid
from itertools import count

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.user_variables import UserVariables
from dataflow.functions.registry import function
from dataflow.values.conversion import Domain
from dataflow.values.types import BIGINT_UNSIGNED, BLOB, DOUBLE, text

SEQUENCE = "rand of a constant"

RANDOM_BYTES_MAX = 1024
_SEED_MAX = 0x3FFFFFFF
_short = count(random.getrandbits(62))


@function("rand", arguments=(Domain.INTEGER,), optional=1, nulls=True, result=DOUBLE, volatile=True)
def rand(*seed: int | None) -> float:
    """A number from 0 to 1; with a seed the first one that MySQL's generator gives after it."""
    if not seed:
        return random.random()
    return _next(*_seeded(seed[0]))[0] / _SEED_MAX


@function(SEQUENCE, arguments=(Domain.ANY, Domain.ANY, Domain.INTEGER), nulls=True, result=DOUBLE, volatile=True)
def rand_of_constant(variables: UserVariables, number: int, seed: int | None) -> float:
    """The next one of the statement's sequence `number`."""
    found = variables.sequences.get(number) or _seeded(seed)
    found = variables.sequences[number] = _next(*found)
    return found[0] / _SEED_MAX


def _seeded(seed: int | None) -> tuple[int, int]:
    low = (seed or 0) & 0xFFFFFFFF
    return ((low * 0x10001 + 55555555) & 0xFFFFFFFF) % _SEED_MAX, ((low * 0x10000001) & 0xFFFFFFFF) % _SEED_MAX


def _next(one: int, two: int) -> tuple[int, int]:
    one = (one * 3 + two) % _SEED_MAX
    return one, (one + two + 33) % _SEED_MAX


@function("uuid", arguments=(), result=text(36), volatile=True)
def uuid_() -> str:
    return str(uuid.uuid1())


@function("uuid_short", arguments=(), result=BIGINT_UNSIGNED, volatile=True)
def uuid_short() -> int:
    return next(_short)


@function("random_bytes", arguments=(Domain.INTEGER,), result=BLOB, volatile=True)
def random_bytes(length: int) -> bytes:
    if not 1 <= length <= RANDOM_BYTES_MAX:
        raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, "length", "random_bytes")
    return os.urandom(length)
