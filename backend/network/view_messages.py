"""Messages about the views of a worker; see `backend.network.messages`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow.runtime.kept_views import KeptReport


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """`reason` says why a view is full, or set aside; it is empty for a partial one. `tables` are ids, `key` column numbers."""

    name: bytes
    definition: str
    tables: tuple[int, ...]
    key: tuple[int, ...]
    reason: str
    keys: int
    rows: int
    size_bytes: int
    hits: int
    misses: int
    evictions: int
    names: tuple[str, ...] = ()
    since: float = 0.0
    is_set_aside: bool = False
    node: str = ""
    """The node whose rows it has; empty for what is set aside."""
    group_columns: tuple[int, ...] = ()
    """That so many `groups` of keys are alike in: which of their keys have rows is known of all."""
    groups: int = 0
    fill_seconds: float = 0.0
    fill_bins: Sequence[int] = ()
    """How long upqueries took, see `backend.processes.durations`; no bins before the first."""
    key_names: tuple[str, ...] = ()
    """The columns of `key` for people, see `dataflow.runtime.explanation`."""


@dataclass(frozen=True, slots=True)
class ArrangementStatus:
    """An index of a node's rows; `views` is how many views are made of it directly."""

    node: str
    operation: str
    columns: tuple[int, ...]
    reason: str
    keys: int
    size_bytes: int
    users: int
    views: int
    shown_columns: str = ""
    """`columns` for people."""


@dataclass(frozen=True, slots=True)
class FillStatus:
    """What is being filled in the background: a view, or `keys` keys of one.

    It was begun as of `epoch`, has read `rows` rows, and is in a round with `behind` changed rows to follow after it.
    """

    view: bytes
    tables: tuple[int, ...]
    keys: int
    epoch: int
    rows: int
    round: int
    behind: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """An operator of the program; `users` are those that it feeds, `views` how many views it gives their rows.

    So many changed `rows` have come to it, and it has taken so many `seconds` with them, on this shard.
    """

    node: str
    operation: str
    inputs: tuple[str, ...]
    users: tuple[str, ...]
    views: int
    rows: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class HostedViews:
    views: list[ViewStatus]
    arrangements: list[ArrangementStatus]
    fills: tuple[FillStatus, ...] = ()
    nodes: tuple[NodeStatus, ...] = ()
    took_s: float = 0.0
    """So long the worker took to tell."""


@dataclass(frozen=True, slots=True)
class ViewsUsed:
    """A shard to shard 0: these views have been read there since it last said so."""

    views: list[bytes]


@dataclass(frozen=True, slots=True)
class FillReported:
    """A shard to shard 0: its part of a fill is where all were to follow to, with so many changed rows `behind`; or failed for a `reason`.

    `suspects` are the views that may be to blame, for certain or not.
    """

    shard: int
    fill: int
    behind: int
    suspects: tuple[bytes, ...] = ()
    reason: str = ""
    is_certain: bool = False


@dataclass(frozen=True, slots=True)
class EndedViews:
    """A shard to shard 0: these views, each with what it does, have missed changes for a `reason`, '' if another shard tells that; they are to be removed."""

    views: list[tuple[bytes, str]]
    reason: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class KeysWanted:
    """A shard to shard 0: these views have keys there that are to be filled beside the epochs."""

    views: list[bytes]


@dataclass(frozen=True, slots=True)
class ViewsKept:
    """A shard to shard 0, after views have ended: what it has kept of them, see `dataflow.runtime.kept_views`. `views` are their definitions, encoded."""

    report: KeptReport
    views: bytes

    @property
    def shard(self) -> int:
        return self.report.shard


@dataclass(frozen=True, slots=True)
class RemoveView:
    """A transition: the view is not kept any more."""

    view: bytes
