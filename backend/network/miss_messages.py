"""Keys that statements have missed in shared memory, asked for together; see `backend.clustering.misses`.

Structs instead of dataclasses: one is made for each turn of an adapter's event loop.
"""

from __future__ import annotations

import msgspec


class LookupEach(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Keys of a view that several statements want, as one msgpack list of tuples; `least_epoch` as in `Lookup`."""

    view: bytes
    keys: bytes
    least_epoch: int = 0


class FoundEach(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """For each key its rows as a msgpack list of tuples, None for one that takes time to be had; the others as in `Found`."""

    rows: list[bytes | None]
    file: str
    epoch: int = 0
    words: str = ""
