"""The encoding of bundles between workers (`dataflow.runtime.shard_messages`, `backend.worker.shard_links`).

Prefixes are flat tuples, and tuples again when they arrive; DECIMALs, and integers of more than 64 bits, are marked as what
they are. A bundle names its generation, epoch and round, so its order with what the coordinator says does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from dataflow.runtime.shard_messages import Bundle

DECIMAL, INTEGER = 1, 2
INTEGER_BITS_MAX = 63


@dataclass(frozen=True, slots=True)
class BundleSent:
    """One shard's part of a round for another."""

    bundle: bytes


@dataclass(frozen=True, slots=True)
class ShardLinked:
    """A worker to another, over a new connection: bundles for this shard go here from now on."""

    shard: int


def encode_bundle(bundle: Bundle) -> bytes:
    rows = [(name, prefixes if is_plain else _marked(prefixes)) for name, prefixes, is_plain in bundle.rows]
    fields = (
        bundle.generation, bundle.epoch, bundle.round, bundle.sender, rows, _marked(bundle.evictions),
        bundle.busy, bundle.level, bundle.working, bundle.tables, bundle.asks, bundle.evicts, bundle.fill, bundle.over, bundle.failed,
    )  # fmt: skip
    try:
        return _encode(fields)
    except OverflowError:
        return _encode(tuple(map(_marked, fields)))


def decode_bundle(payload: bytes) -> Bundle:
    generation, epoch, round_, sender, rows, evictions, *others = _decode(payload)
    received = tuple([(name, prefixes, True) for name, prefixes in rows])
    return Bundle(generation, epoch, round_, sender, received, _frozen(evictions), *others)


def _marked(value: Any) -> Any:
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(map(_marked, value))
    if kind is Decimal:
        return msgspec.msgpack.Ext(DECIMAL, str(value).encode())
    if kind is int and value.bit_length() > INTEGER_BITS_MAX:
        return msgspec.msgpack.Ext(INTEGER, str(value).encode())
    return value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if type(value) is list else value


def _unmarked(code: int, data: memoryview) -> Any:
    text = bytes(data).decode()
    return Decimal(text) if code == DECIMAL else int(text)


_Fields = tuple[
    int, int, int, int, list[tuple[str, list[tuple[Any, ...]]]], Any,
    bool, int | None, bool, tuple[int, ...], tuple[bytes | int, ...], bool, int, bool, tuple[int, ...],
]  # fmt: skip
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Fields, ext_hook=_unmarked).decode
