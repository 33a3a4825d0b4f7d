"""What the views of one worker of several want of it; see `backend.view_shard`."""

from __future__ import annotations

from typing import Protocol

from dataflow.epoch_messages import ViewsFailed


class Outside(Protocol):
    """What the worker does for its views."""

    def send_bundle(self, to: int, payload: bytes) -> None: ...

    def views_applied(self) -> None: ...

    def want_epoch(self) -> None: ...

    def views_failed(self, failed: ViewsFailed) -> None: ...

    def views_used(self, views: list[bytes]) -> None: ...

    def change_views(self, transition: bytes) -> bool:
        """On shard 0: have all shards make a transition; False while one is missing."""
        ...
