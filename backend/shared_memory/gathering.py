"""Many pieces of one buffer in one Arrow array, copied without a step of Python for each.

Whoever gathers has to know that the pieces are inside of the buffer: nothing is checked here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]

_take, _UNCHECKED = pc.get_function("array_take"), pc.TakeOptions(boundscheck=False)


@lru_cache(maxsize=64)
def _odd(count: int) -> Any:
    return pa.array(np.arange(1, 2 * count, 2))


def gathered(buffer: Any, begins: tuple[Array, Any], ends: tuple[Array, Any], kind: Any) -> Any:
    """What is between the places `begins` and `ends`, as an array of `kind`, large strings or binaries.

    Both come as two numbers that are added up here.
    """
    offsets = spans(len(begins[0]))
    np.add(*begins, out=offsets[1:-1:2])
    np.add(*ends, out=offsets[2:-1:2])
    return taken(buffer, offsets, kind)


def spans(count: int) -> Array:
    """Room for where so many pieces begin and end, by turns, between its first number and its last."""
    return np.empty(2 * count + 2, np.int64)


def taken(buffer: Any, offsets: Array, kind: Any) -> Any:
    """The pieces that were written into `spans`, as an array of `kind`."""
    count = len(offsets) // 2 - 1
    # An array over the whole buffer, with the pieces at odd places and anything between them, is
    # never looked at but for those that are taken.
    offsets[0] = 0
    offsets[-1] = offsets[-2]
    array = pa.Array.from_buffers(kind, 2 * count + 1, [None, pa.py_buffer(offsets), buffer])
    return _take.call([array, _odd(count)], _UNCHECKED)
