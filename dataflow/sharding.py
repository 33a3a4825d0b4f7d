"""The shard of a key: the same in every process, whenever it is computed.

Keys that are equal must be on one shard, also an integer and the DECIMAL it equals.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Any
from zlib import crc32

import numpy as np

from dataflow.expressions.source import Key

MIXER = 0x9E3779B1
"""Close to 2**32 divided by the golden ratio: neighbouring products are far apart."""


def _canonical(part: object) -> object:
    if not isinstance(part, Decimal | float):
        return part
    if isfinite(part) and part == int(part):
        return int(part)
    near = float(part)
    return near if near == part else str(part.normalize())  # type: ignore[union-attr]


def shard_of(key: Key, shard_count: int) -> int:
    if shard_count == 1:
        return 0
    parts = tuple(map(_canonical, key)) if isinstance(key, tuple) else _canonical(key)
    # The last bits of a CRC are the same for many short texts; those of the product are not.
    number = parts if isinstance(parts, int) else crc32(repr(parts).encode())
    return ((number * MIXER & 0xFFFFFFFF) * shard_count) >> 32


def shards_of(numbers: np.ndarray[Any, Any], shard_count: int) -> np.ndarray[Any, Any]:
    """`shard_of` of many keys, which are integers of 64 bits."""
    mixed: np.ndarray[Any, Any] = (numbers * np.int64(MIXER)) & np.int64(0xFFFFFFFF)
    return (mixed * shard_count) >> 32


def shard_source(key: str, shard_count: int, otherwise: str) -> str:
    """`shard_of` of a key that is nearly always an integer, as generated code; `otherwise` names the function for all keys."""
    number = f"({key} * {MIXER} & 0xFFFFFFFF) * {shard_count} >> 32"
    return f"({number} if {key}.__class__ is int else {otherwise}({key}))"
