"""The protocols between a worker and its views, for any number of workers.

An epoch goes by its views in the same steps everywhere: what it changes is collected before it is stored; once it is
stored, a worker that is alone brings its views up to it at once, and several do so together when all have stored it
(`apply`, `landed`). `backend.views.followed_views` are the views of one worker, `backend.views.views_of_several` one worker's part of
those of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from backend.network.messages import Message
from backend.network.transport import Peer
from backend.network.view_messages import EndedViews, FillReported, ViewsKept
from backend.shared_memory.publication import Publisher
from backend.views.hosted_view import HostedView
from backend.views.hung_views import HungViews
from dataflow.commit.coordinator import Coordinator
from dataflow.commit.epoch_effects import ApplyEpoch, PersistEpoch, PreparedEpoch, Send, ShardEffect
from dataflow.commit.epoch_messages import ViewsFailed
from dataflow.commit.epochs import ShardEpochs
from dataflow.runtime.engine import Engine
from dataflow.schema import Table
from dataflow.state.clock import MemoryReport

Handlers = Mapping[type, Callable[[Peer, int, Any], None]]


@dataclass(frozen=True, slots=True)
class ShownViews:
    """What the views are as of an epoch, between two of them."""

    epoch: int
    views: Mapping[bytes, HostedView]
    engine: Engine
    publisher: Publisher


class Hosting(Protocol):
    """What of a worker its views use."""

    coordinator: Coordinator | None
    epochs: ShardEpochs

    @property
    def shown_epoch(self) -> int:
        """The last epoch that can be read here."""
        ...

    @property
    def catalog_version(self) -> int: ...

    def run(self, effects: list[ShardEffect] | list[Send]) -> None: ...

    def handle(self, peer: Peer, request: int, message: Any) -> None:
        """Answer a request, now or when what it asks for is there."""
        ...

    def tell_coordinator(self, message: Message) -> None: ...

    def count_reads(self, count: int) -> None: ...


class Outside(Protocol):
    """What is done for the part of a worker among several; see `backend.views.view_shard`."""

    def send_bundle(self, to: int, payload: bytes) -> None: ...

    def views_applied(self) -> None: ...

    def want_epoch(self) -> None: ...

    def views_failed(self, failed: ViewsFailed) -> None: ...

    def views_used(self, views: list[bytes]) -> None: ...

    def fill_reported(self, report: FillReported) -> None:
        """Tell shard 0."""
        ...

    def views_ended(self, ended: EndedViews) -> None: ...

    def keys_wanted(self, views: list[bytes]) -> None:
        """The same of views with keys that are to be filled beside the epochs."""
        ...

    def views_kept(self, kept: ViewsKept) -> None:
        """The same of what this shard has kept of views that have ended."""
        ...

    def change_views(self, transition: bytes) -> bool:
        """On shard 0: have all shards make a transition; False while one is missing."""
        ...


class WorkerViews(Protocol):
    """Also `dataflow.commit.epoch_flight.DueViews`."""

    @property
    def handlers(self) -> Handlers:
        """What they answer."""
        ...

    @property
    def view_count(self) -> int: ...

    @property
    def memory(self) -> MemoryReport: ...

    def keep_idle(self, seconds: float) -> None:
        """Views that nobody has used for so long go."""
        ...

    def keep_small(self, rows_max: int) -> None:
        """Tables of no more rows are kept whole, where that is possible."""
        ...

    def watch(self, hung: HungViews) -> None:
        """Leave the names of views that hang for a successor, and set aside those that a predecessor has left."""
        ...

    def shown(self) -> ShownViews | None:
        """None while they are brought up to an epoch."""
        ...

    def when_shown(self, action: Callable[[], None]) -> None:
        """Do it each time they show another epoch."""
        ...

    def close(self) -> None: ...

    def enforce_limit(self) -> None: ...

    def is_due(self, record: PreparedEpoch | None) -> bool: ...

    def passed(self, epoch: int) -> None: ...

    def collect(self, epoch: PersistEpoch) -> bool:
        """The epoch is about to be stored; whether they bring themselves up to it as soon as it is."""
        ...

    def stored(self, wait: Callable[[], None], then: Callable[[int], None]) -> None:
        """The epoch is stored, or is after `wait`; `then` is told how many rows they have followed by now."""
        ...

    def apply(self, epoch: ApplyEpoch) -> None:
        """All have stored it: bring them up to it, together."""
        ...

    def landed(self) -> None:
        """On shard 0: all have applied it."""
        ...

    def start(self, generation: int) -> None:
        """Forget the views of earlier generations."""
        ...

    def blame(self, failed: ViewsFailed) -> None:
        """On shard 0: some shard cannot keep views."""
        ...

    def tables_changed(self, versions: Mapping[int, int], tables: Mapping[int, Table]) -> None:
        """Views that cannot go on with these versions are to go. `tables` are those that have changed."""
        ...

    def allow(self, versions: Mapping[int, int]) -> bool:
        """Whether no view is left that needs other versions of these tables."""
        ...

    def shard_found(self, shard: int, peer: Peer) -> None: ...

    def peer_lost(self, peer: Peer) -> None: ...
