"""One shard's part in a fill of several workers, done in a thread piece by piece; one that hangs is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.views.view_filling import Runner, Stuck, watch
from dataflow.runtime.shard_fill import ShardFill, Work
from dataflow.runtime.shard_messages import Effect


class FillRunner:
    """`ran` is told what a piece of work has given or raised; `failed` that the fill does not get on, whatever becomes of its thread."""

    def __init__(
        self,
        run: Runner,
        ran: Callable[[ShardFill, Sequence[Effect], Exception | None], None],
        failed: Callable[[ShardFill, Exception], None],
    ) -> None:
        self._run = run
        self._ran = ran
        self._failed = failed
        self._watched: ShardFill | None = None

    def close(self) -> None:
        self._watched = None
        self._run.close()

    def __call__(self, fill: ShardFill, work: Work) -> None:
        handled: list[Effect] = []

        def done(error: BaseException | None) -> None:
            if error is not None and not isinstance(error, Exception):
                raise error
            self._ran(fill, handled, error)

        self._run(lambda: handled.extend(work()), done)
        if self._watched is not fill:
            self._watched = fill
            watch(lambda: self._watched is fill and not fill.budget.abandoned, lambda: fill.progress, lambda: self._give_up(fill))

    def _give_up(self, fill: ShardFill) -> None:
        self._run.renew()
        fill.budget.abandoned = True
        self._failed(fill, Stuck())
