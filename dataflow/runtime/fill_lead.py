"""On shard 0: which views, or keys of views, are filled beside the epochs, and when all shards follow, take over, or let go.

One fill is under way at a time; whatever is wanted meanwhile is the next one, all of it together. What is decided goes to all
shards as transitions of epochs (`dataflow.runtime.shard_fill`), in order, so none of them needs to name a fill. Decisions may be about
a fill of an earlier generation: they are right for whichever is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dataflow.runtime.shard_messages import ViewName

ROWS_AT_ONCE = 1000
"""So many changed rows of a shard are followed within the epoch in which a fill is taken over."""
ROUNDS_MAX = 50
"""Where epochs come faster than a fill can follow them, the rest is done at once after so many rounds."""


class FillLead:
    def __init__(
        self,
        shard_count: int,
        begin: Callable[[tuple[ViewName, ...]], bool],
        follow: Callable[[], object],
        end: Callable[[bool], object],
    ) -> None:
        """All shards are to begin a fill, follow, or end it: take it over, if True, or let it go. `begin` is False while one is missing."""
        self._shard_count = shard_count
        self._begin, self._follow, self._end = begin, follow, end
        self.under_way: tuple[ViewName, ...] = ()
        self.forget()

    def forget(self) -> None:
        """All views are gone, and those to come."""
        self._waiting: dict[ViewName, None] = {}
        self.under_way = ()
        self._reports: dict[int, dict[int, int]] = {}
        self._rounds = 0
        self._is_ending = False

    def want(self, view: ViewName, is_more: bool = False) -> None:
        """Have the view filled, now or next; next, if `is_more` than what is being filled of it."""
        if is_more or view not in self.under_way or self._is_ending:
            self._waiting[view] = None
        self._begin_next()

    def _begin_next(self) -> None:
        if not self.is_busy and self._waiting:
            self.under_way, self._waiting = tuple(self._waiting), {}
            if not self._begin(self.under_way):
                self.under_way = ()

    @property
    def is_busy(self) -> bool:
        return bool(self.under_way) or self._is_ending

    def resume(self, views: tuple[ViewName, ...]) -> None:
        """All shards have been told to fill these from what they have kept."""
        assert not self.is_busy
        self.under_way = views

    def reached(self, shard: int, fill: int, behind: int) -> None:
        """A shard has come to the epoch that all were to follow to, and so many changed rows wait there."""
        reports = self._reports.setdefault(fill, {})
        reports[shard] = behind
        if len(reports) < self._shard_count or self._is_ending:
            return
        self._reports.clear()
        self._rounds += 1
        if max(reports.values()) > ROWS_AT_ONCE and self._rounds < ROUNDS_MAX:
            self._follow()
        else:
            self._is_ending = True
            self._end(True)

    def failed(self) -> None:
        """The fill under way cannot go on; who wants its views may want them again."""
        if self.under_way and not self._is_ending:
            self._is_ending = True
            self._end(False)

    def remove(self, view: ViewName) -> None:
        """The view is not wanted any more. Others that are filled with it are begun again."""
        self._waiting.pop(view, None)
        if view in self.under_way and not self._is_ending:
            self._waiting = dict.fromkeys([each for each in self.under_way if each != view]) | self._waiting
            self.failed()

    def begin_again(self, views: Collection[ViewName]) -> None:
        """What is read for these views has changed: a fill of some of them is begun again."""
        if not self._is_ending and any(each in views for each in self.under_way):
            self._waiting = dict.fromkeys(self.under_way) | self._waiting
            self.failed()

    def landed(self, is_free: bool) -> None:
        """An epoch is over everywhere; `is_free`: shard 0 has no fill under way."""
        if self._is_ending and is_free:
            self._is_ending, self._rounds, self.under_way = False, 0, ()
            self._reports.clear()
            self._begin_next()
