"""Requests to worker 0 for an epoch at which all shards can be read; they wait while there is none."""

from __future__ import annotations

from backend.network.messages import AskEpoch, ReadableEpoch
from backend.network.transport import Peer
from dataflow.commit.coordinator import Coordinator


class EpochQuestions:
    def __init__(self, coordinator: Coordinator | None) -> None:
        self._coordinator = coordinator
        self._waiting: list[tuple[Peer, int]] = []

    def ask(self, peer: Peer, request: int, message: AskEpoch) -> None:
        self._waiting.append((peer, request))
        self.answer()

    def answer(self) -> None:
        """Something may have changed."""
        if not self._waiting or self._coordinator is None:
            return
        epoch = self._coordinator.readable_epoch
        if epoch is not None:
            waiting, self._waiting = self._waiting, []
            for peer, request in waiting:
                peer.send(ReadableEpoch(epoch), request)
