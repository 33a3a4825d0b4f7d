"""What workers say to each other, and what is said to a worker, while an epoch is applied.

Items are plain tuples of numbers, keys and rows; operators go by their number, which is the
same on all shards because all make the same transitions in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataflow.clock import MemoryReport
from dataflow.delta import Delta
from dataflow.node import Columns, Node
from dataflow.source import Key
from dataflow.types import Row

Item = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AddView:
    view: int
    node: Node
    key: Columns


@dataclass(frozen=True, slots=True)
class RemoveView:
    view: int


Transition = AddView | RemoveView


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """The epoch is decided and in the source: apply it. `changes` are this shard's own rows.

    Every shard is given every epoch, with the same transitions.
    """

    epoch: int
    changes: Mapping[int, Delta] = field(default_factory=dict)
    transitions: tuple[Transition, ...] = ()


@dataclass(frozen=True, slots=True)
class Upquery:
    """Fill these index keys of a view; all of them live on this shard."""

    request: int
    view: int
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class EvictKeys:
    """Make keys of a view that live on this shard holes at the end of the next epoch."""

    view: int
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class LimitMemory:
    """Evict cold keys of this shard at the end of the next epoch until its state fits."""

    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Everything a shard has for another one in a round, also if it is nothing.

    `busy`: the sender sent something to someone. `level`: the lowest level of its pending fills.
    """

    generation: int
    epoch: int
    round: int
    sender: int
    items: tuple[Item, ...]
    busy: bool
    level: int | None
    tables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """A shard was lost and is back: everyone begins anew, with no state, after `epoch`."""

    generation: int
    epoch: int
    views: tuple[AddView, ...]


ToWorker = BeginEpoch | Upquery | EvictKeys | LimitMemory | Bundle | Restart


@dataclass(frozen=True, slots=True)
class Send:
    to: int
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class EpochApplied:
    """`touched`: the keys of each view to publish anew."""

    epoch: int
    touched: tuple[tuple[int, frozenset[Key]], ...]


@dataclass(frozen=True, slots=True)
class UpqueryAnswered:
    request: int
    epoch: int
    rows: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True)
class EpochWanted:
    """Upqueries wait and no epoch is running."""


@dataclass(frozen=True, slots=True)
class MemoryLimited:
    report: MemoryReport


Effect = MemoryLimited | Send | EpochApplied | UpqueryAnswered | EpochWanted
