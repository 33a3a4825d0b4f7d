"""Messages about the program, between those who ask for views, the leading controller, and shard 0; see `backend.network.messages`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AddView:
    """A query to maintain: its node, the columns it is looked up by, its tables, the columns it is ordered by.

    `names` and `named` are the names and ids of the named views that it reads; `since` is when it was first maintained,
    in Unix time.
    """

    view: bytes
    node: bytes
    key: tuple[int, ...]
    tables: list[bytes]
    order: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    since: float = 0.0
    named: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MaintainViews:
    """To the leading controller: have these maintained; answered by ViewsMaintained or NotLeading, after the transition."""

    views: list[AddView]


@dataclass(frozen=True, slots=True)
class ViewsMaintained:
    """Those that the workers have now. Others are refused, or are there later."""

    views: list[bytes]


@dataclass(frozen=True, slots=True)
class ChangeViews:
    """A transition, from the leading controller to shard 0: views that all shards have from now on, and those that they let go; answered by ViewsChanged."""

    number: int
    added: list[AddView]
    removed: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ViewsChanged:
    """Which of the added views are there, and why each is full; '' if it is partial."""

    views: dict[bytes, str]


@dataclass(frozen=True, slots=True)
class AskViewsInUse:
    """Of shard 0, by the leading controller: which views there are; answered by ViewsInUse."""


@dataclass(frozen=True, slots=True)
class ViewsInUse:
    """The views that are there or on the way, and those of them that are to go: nobody has used them, or they are too large to be kept whole by now."""

    views: list[bytes]
    idle: list[bytes]


@dataclass(frozen=True, slots=True)
class PlanView:
    """To the leading controller: how would this be maintained? Answered by ViewPlan or NotLeading."""

    view: AddView


@dataclass(frozen=True, slots=True)
class PlannedIndex:
    """An arrangement of a step's rows that answers lookups; `shared_with` are the other views that use it."""

    columns: str
    state: str
    shared_with: list[bytes]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """An operator of a view, `depth` steps below the one that gives its rows; `state` is "partial by …", "full: reason" or empty."""

    depth: int
    text: str
    state: str
    shared_with: list[bytes]
    indexes: list[PlannedIndex]


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """`reason` says why the view is full; `steps` are from the one that gives its rows downwards."""

    view: bytes
    key: str
    reason: str
    is_there: bool
    steps: list[PlannedStep]


@dataclass(frozen=True, slots=True)
class AskTransitions:
    """Of the leading controller: the latest transitions; answered by LatestTransitions or NotLeading."""


@dataclass(frozen=True, slots=True)
class ShownTransition:
    """`plan` says in words what was reused and what came."""

    number: int
    moment: float
    added: list[bytes]
    removed: list[bytes]
    plan: str


@dataclass(frozen=True, slots=True)
class LatestTransitions:
    """The newest last."""

    transitions: list[ShownTransition]


ProgramMessage = (
    MaintainViews | ViewsMaintained | ChangeViews | ViewsChanged | AskViewsInUse | ViewsInUse
    | PlanView | ViewPlan | AskTransitions | LatestTransitions
)  # fmt: skip
