"""Messages between workers, and to a worker, while an epoch is applied.

Legs go by their name and operators by their number, which are the same on all shards
because all make the same transitions in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dataflow.expressions.source import Key
from dataflow.plan.node import Columns, Node
from dataflow.state.clock import MemoryReport
from dataflow.state.delta import Delta
from dataflow.values.types import Row

if TYPE_CHECKING:
    from dataflow.runtime.engine import Engine

Rows = tuple[str, list[tuple[Any, ...]], bool]
"""The prefixes for a leg, and whether all their values are plain: no DECIMALs."""
Eviction = tuple[int, tuple[tuple[int, Any], ...]]
"""An operator, and what is known by column of the rows of it that will not be heard of any more."""
ViewName = int | bytes


@dataclass(frozen=True, slots=True)
class StartView:
    view: ViewName
    node: Node
    key: Columns
    order: Columns = ()
    full: str = ""
    """Why it is full even if it could be partial; the same on all shards."""


@dataclass(frozen=True, slots=True)
class EndView:
    view: ViewName


@dataclass(frozen=True, slots=True)
class TakeViews:
    """Views that another engine has, which is at the same epoch: what it holds is taken over.

    Where shards have `lost` theirs, only the keys that are intact are (`dataflow.runtime.kept_views`).
    """

    views: tuple[StartView, ...]
    prepared: Engine | None
    lost: frozenset[int] = frozenset()


Transition = StartView | EndView | TakeViews


def coming(transition: Transition) -> tuple[StartView, ...]:
    """The views that come by it."""
    match transition:
        case StartView():
            return (transition,)
        case TakeViews(views):
            return views
        case EndView():
            return ()


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """The epoch is decided and in the source: apply it, then make the transitions.

    `changes` are this shard's own rows. Every shard is given the same epochs, with the same transitions.
    """

    epoch: int
    changes: Mapping[int, Delta] = field(default_factory=dict)
    transitions: tuple[Transition, ...] = ()


@dataclass(frozen=True, slots=True)
class Upquery:
    """Fill these index keys of a view; all of them live on this shard."""

    request: int
    view: ViewName
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class EvictKeys:
    """Make keys of a view that live on this shard holes at the end of the next epoch."""

    view: ViewName
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class LimitMemory:
    """Evict cold keys of this shard at the end of the next epoch until its state fits."""

    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Everything a shard has for another one in a round, also if it is nothing.

    `busy`: the sender sent something that may cause more. `level`: the lowest level of its pending fills.
    `working`: the sender has or sent rows of the step under way.
    In round 0, `tables` are those with changes, `asks` the views with upqueries, `evicts` whether keys have to go.
    `fill`: the number of the fill that it belongs to, see `dataflow.runtime.shard_fill`; 0 if it is the epoch's own.
    `over`: the sender has read more rows for upqueries than it may, so that all let them go.
    `failed`: the operators that have missed changes, as far as the sender knows; views made from them end (`dataflow.runtime.shard_programs`).
    """

    generation: int
    epoch: int
    round: int
    sender: int
    rows: tuple[Rows, ...]
    evictions: tuple[Eviction, ...]
    busy: bool
    level: int | None
    working: bool
    tables: tuple[int, ...] = ()
    asks: tuple[ViewName, ...] = ()
    evicts: bool = False
    fill: int = 0
    over: bool = False
    failed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reset:
    """A shard was lost, or failed: forget everything. What comes is of a new generation. Somebody may have kept the engine."""

    generation: int
    is_kept: bool = False


ToWorker = BeginEpoch | Upquery | EvictKeys | LimitMemory | Bundle | Reset


@dataclass(frozen=True, slots=True)
class Outgoing:
    to: int
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class EpochApplied:
    """`touched`: the keys of each view to publish anew."""

    epoch: int
    touched: tuple[tuple[ViewName, frozenset[Key]], ...]


@dataclass(frozen=True, slots=True)
class UpqueryAnswered:
    request: int
    epoch: int
    rows: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True)
class UpqueryRefused:
    """There is no such view (any more), or one of the keys needs too many rows."""

    request: int


@dataclass(frozen=True, slots=True)
class StepWanted:
    """Upqueries wait and no epoch is running."""


@dataclass(frozen=True, slots=True)
class KeysTooLarge:
    """These views have keys here that need too many rows to be filled in an epoch."""

    views: tuple[ViewName, ...]


@dataclass(frozen=True, slots=True)
class MemoryLimited:
    report: MemoryReport


@dataclass(frozen=True, slots=True)
class ViewsEnded:
    """These views have missed changes, because of an `error` here, or of one that another shard has told of: they are to be removed.

    If it is not `is_certain`, they may be kept another time.
    """

    views: tuple[ViewName, ...]
    error: Exception | None = None
    is_certain: bool = True


Effect = ViewsEnded | KeysTooLarge | MemoryLimited | Outgoing | EpochApplied | UpqueryAnswered | UpqueryRefused | StepWanted
