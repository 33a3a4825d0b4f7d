"""Views that cannot be maintained, and what is told of them.

A view that fails takes nobody else with it: it is set aside, its query is evaluated from then on, and `millrace.views` says why.
It stays aside until a definition of what it reads changes, or the worker starts again; of several workers it is shard 0 that
sets views aside for all, and names them. `backend.views.hung_views` remembers those that did not fail but never ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from backend.network.view_messages import ViewStatus
from backend.views.hosted_view import HostedView
from backend.views.known_view import KnownView
from backend.views.view_filling import Stuck
from backend.views.view_restarting import TooManyRows
from dataflow.errors import MillraceError
from dataflow.runtime.loading import OutOfMemory
from dataflow.runtime.operator import below

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
    known: KnownView
    reason: str
    definition: str
    since: float

    def status(self) -> ViewStatus:
        known = self.known
        return ViewStatus(
            known.name, self.definition, tuple(sorted(known.tables)), known.message.key, self.reason, 0, 0, 0, 0, 0, 0,
            known.names, self.since, is_set_aside=True,
        )  # fmt: skip


class SetAsideViews:
    """Those that are not tried again; of several workers, shard 0 knows them."""

    def __init__(self) -> None:
        self._failures: dict[bytes, int] = {}
        self._aside: dict[bytes, SetAside] = {}

    def __contains__(self, name: bytes) -> bool:
        return name in self._aside

    def add(self, known: KnownView, reason: str, definition: str = "", level: int = logging.WARNING) -> None:
        log.log(level, "view %s %s is set aside: %s, %s", known.name.hex(), known.names, reason, known.node)
        self._aside[known.name] = SetAside(known, reason, definition, time.time())

    def blame(self, known: KnownView, reason: str, is_certain: bool, definition: str = "") -> None:
        """A shard could not go on, perhaps because of this view: the third time it is set aside."""
        self._failures[known.name] = FAILURES_MAX if is_certain else self._failures.get(known.name, 0) + 1
        if self._failures[known.name] >= FAILURES_MAX and known.name not in self:
            self.add(known, reason, definition)

    def tables_changed(self, versions: Mapping[int, int]) -> None:
        """Those that were defined for other tables may be tried again."""
        for name in [name for name, each in self._aside.items() if each.known.is_stale(versions)]:
            del self._aside[name]
            self._failures.pop(name, None)

    def status(self) -> list[ViewStatus]:
        return [each.status() for each in self._aside.values()]


def reason_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:REASON_LENGTH_MAX]


def severity(error: BaseException) -> int:
    """Values that do not fit are no fault of this program."""
    return logging.WARNING if isinstance(error, MillraceError | OutOfMemory | HeldUp | Stuck | TooManyRows) else logging.ERROR


def code_users(views: Mapping[bytes, HostedView]) -> dict[int, set[bytes]]:
    """The views that generated functions belong to, by the identity of the functions' globals."""
    users: dict[int, set[bytes]] = {}
    for name, hosted in views.items():
        for operator in below(hosted.view.operator).values():
            for function in list(operator.updates.values()):
                users.setdefault(id(getattr(function, "__globals__", None)), set()).add(name)
    return users
