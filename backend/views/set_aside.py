"""Views that cannot be maintained: which are to blame when an epoch cannot be followed, and what is told of them.

A view that fails takes nobody else with it: it is set aside, its query is evaluated from then on, and `millrace.views` says why.
It stays aside until a definition of what it reads changes, or the worker starts again; of several workers it is shard 0 that
sets views aside for all, and names them. `backend.views.hung_views` remembers those that did not fail but never ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType

from backend.network.messages import AddView
from backend.network.view_messages import ViewStatus
from backend.views.hosted_view import HostedView
from backend.views.view_filling import OutOfMemory, Stuck
from backend.views.view_restarting import TooManyRows
from controller.catalog import decode_table
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.errors import MillraceError
from dataflow.runtime.engine import Engine
from dataflow.runtime.loading import Budget, OverBudget
from dataflow.runtime.operator import below
from persistence.table_source import TableSource

TRIED_KEYS_MAX = 1_000
TRIED_ROWS_MAX = 20_000
"""What is computed of a view to see whether it is to blame."""
REASON_LENGTH_MAX = 500
FAILURES_MAX = 3
"""Of several workers: how often a view is tried that may be to blame, but perhaps is not."""

log = logging.getLogger(__name__)


class HeldUp(Exception):
    """A view's code ran when the worker before this one stood still."""

    def __init__(self) -> None:
        super().__init__("the worker stood still while it ran this view's code, and was ended")


@dataclass(frozen=True, slots=True)
class SetAside:
    """`versions` are those of its tables, `named` the ids of the named views that it reads."""

    key: tuple[int, ...]
    versions: Mapping[int, int | None]
    reason: str
    names: tuple[str, ...] = ()
    named: frozenset[int] = frozenset()
    definition: str = ""
    since: float = field(default_factory=time.time)

    def is_current(self, versions: Mapping[int, int]) -> bool:
        return self.named <= versions.keys() and all(versions.get(each) == known for each, known in self.versions.items())

    def status(self, name: bytes) -> ViewStatus:
        return ViewStatus(
            name, self.definition, tuple(sorted(self.versions)), self.key, self.reason, 0, 0, 0, 0, 0, 0,
            self.names, self.since, is_set_aside=True,
        )  # fmt: skip


class BlamedViews:
    """On shard 0 of several: views whose maintenance has failed somewhere, and those of them that are set aside."""

    def __init__(self) -> None:
        self._failures: dict[bytes, int] = {}
        self._reasons: dict[bytes, str] = {}
        self._aside: dict[bytes, SetAside] = {}

    def blame(self, name: bytes, failed: ViewsFailed) -> bool:
        """Whether the view is set aside from now on."""
        self._failures[name] = FAILURES_MAX if failed.is_certain else self._failures.get(name, 0) + 1
        if self._failures[name] >= FAILURES_MAX:
            self._reasons[name] = failed.reason
        return name in self._reasons

    def refuses(self, view: AddView, definition: str = "") -> bool:
        """Whether the view is set aside; from now on `status` tells of it."""
        reason = self._reasons.get(view.view)
        if reason is not None and view.view not in self._aside:
            log.warning("view %s %s is set aside on all shards: %s", view.view.hex(), view.names, reason)
            versions = {table.id: table.version for table in map(decode_table, view.tables)}
            self._aside[view.view] = SetAside(view.key, versions, reason, view.names, frozenset(view.named), definition)
        return reason is not None

    def tables_changed(self, versions: Mapping[int, int]) -> None:
        for name in [name for name, each in self._aside.items() if not each.is_current(versions)]:
            del self._aside[name], self._reasons[name], self._failures[name]

    def status(self) -> list[ViewStatus]:
        return [each.status(name) for name, each in self._aside.items()]


def reason_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:REASON_LENGTH_MAX]


def to_blame(
    error: BaseException, views: Mapping[bytes, HostedView], source: TableSource, changed: Collection[int]
) -> dict[bytes, BaseException]:
    """Which views are the reason that `changed` tables could not be followed, each with what is wrong with it.

    State equals the query evaluated from scratch: who cannot be computed now is to blame. If all can be, it is the views
    that the code which raised belongs to; if that is not known, nobody is.
    """
    suspects = {name: hosted for name, hosted in views.items() if not hosted.tables.isdisjoint(changed)} or dict(views)
    found: dict[bytes, BaseException] = {}
    for name, hosted in suspects.items():
        wrong = _tried(hosted, source)
        if wrong is not None:
            found[name] = wrong
    return found or dict.fromkeys(_raised(error.__traceback__, suspects), error)


def severity(error: BaseException) -> int:
    """Values that do not fit are no fault of this program."""
    return logging.WARNING if isinstance(error, MillraceError | OutOfMemory | HeldUp | Stuck | TooManyRows) else logging.ERROR


def _tried(hosted: HostedView, source: TableSource) -> Exception | None:
    view = hosted.view
    engine = Engine(source.copy(hosted.tables))
    try:
        with engine.spending(Budget(TRIED_ROWS_MAX)):
            made = engine.add_view(view.node, view.key, view.order)
            engine.fill(made, list(islice(view.arrangement.index, TRIED_KEYS_MAX)))
    except OverBudget:
        return None
    except Exception as error:
        return error
    finally:
        engine.close()
    return None


def _raised(trace: TracebackType | None, views: Mapping[bytes, HostedView]) -> set[bytes]:
    """The views that the innermost generated function in the trace belongs to."""
    spaces: list[int] = []
    while trace is not None:
        spaces.append(id(trace.tb_frame.f_globals))
        trace = trace.tb_next
    users = code_users(views)
    return next((users[space] for space in reversed(spaces) if space in users), set())


def code_users(views: Mapping[bytes, HostedView]) -> dict[int, set[bytes]]:
    """The views that generated functions belong to, by the identity of the functions' globals."""
    users: dict[int, set[bytes]] = {}
    for name, hosted in views.items():
        for operator in below(hosted.view.operator).values():
            for function in list(operator.updates.values()):
                users.setdefault(id(getattr(function, "__globals__", None)), set()).add(name)
    return users
