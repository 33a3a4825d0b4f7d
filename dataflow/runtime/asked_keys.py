"""The upqueries of one shard among several: which keys an epoch fills, and what those who ask are told.

All that is asked for is filled together, in the next epoch. If that needs more rows than an epoch may read, all shards let the
fills go, and for some epochs fill one key in each, of the first shard that asks: the key for which it happens again is
too large, and filled beside the epochs (`dataflow.runtime.shard_fill`). It is refused until it is there, or for good if that fails.
So nobody else suffers from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dataflow.expressions.source import Key
from dataflow.runtime.engine import View
from dataflow.runtime.shard_messages import (
    Effect,
    KeysTooLarge,
    Upquery,
    UpqueryAnswered,
    UpqueryRefused,
    ViewName,
)
from dataflow.state.delta import rows_of

ROWS_ASKED_MAX = 50_000
"""So many rows of a shard are read in an epoch for keys that are asked for, for which all wait: about a quarter of a second."""
CAREFUL_EPOCHS = 100
"""So many epochs with upqueries fill one key each, after one that would have read too much; all shards count the same."""


class AskedKeys:
    def __init__(self, views: Mapping[ViewName, View]) -> None:
        self._views = views
        self.waiting: list[Upquery] = []
        """Those of the next epoch."""
        self._asked: list[Upquery] = []
        self._tried: list[tuple[ViewName, Key]] = []
        self._careful_left = 0
        self._too_large: set[tuple[ViewName, Key]] = set()
        self._given_up: set[tuple[ViewName, Key]] = set()

    def begin(self) -> tuple[ViewName, ...]:
        """An epoch takes what waits; the views that are asked for."""
        self._asked, self.waiting = self.waiting, []
        return tuple({each.view: None for each in self._asked})

    def is_too_large(self, view: ViewName, key: Key) -> bool:
        return bool(self._too_large) and (view, key) in self._too_large

    def forget(self, view: ViewName) -> None:
        """The view is gone."""
        self._too_large = {each for each in self._too_large if each[0] != view}
        self._given_up &= self._too_large

    def large_keys(self, view: ViewName) -> tuple[Key, ...]:
        """Those of the view that are to be filled beside the epochs."""
        return tuple([key for name, key in self._too_large - self._given_up if name == view])

    def give_up(self, keys: Mapping[ViewName, tuple[Key, ...]]) -> None:
        """They cannot be filled at all."""
        self._given_up |= {(view, key) for view, each in keys.items() for key in each} & self._too_large

    def taken_over(self) -> None:
        """Something was filled beside the epochs."""
        views = self._views
        self._too_large = {(view, key) for view, key in self._too_large if view in views and key not in views[view].arrangement.index}
        self._given_up &= self._too_large

    def chosen(self, is_first: bool) -> list[tuple[View, Key]]:
        """The holes to be filled. `is_first`: no shard before this one asks for anything in this epoch."""
        missing = [(each.view, key) for each in self._asked for key in self._missing(each)]
        self._tried = missing if not self._careful_left else missing[:1] if is_first else []
        return [(self._views[name], key) for name, key in self._tried]

    def filled(self, is_over: bool) -> list[Effect]:
        """The chosen ones are filled; or let go on all shards, if `is_over`."""
        if not is_over:
            self._careful_left = max(self._careful_left - 1, 0)
            return []
        large = self._tried if self._careful_left else []
        self._too_large.update(large)
        self._careful_left = CAREFUL_EPOCHS
        return [KeysTooLarge(tuple({view: None for view, _ in large}))] if large else []

    def _missing(self, asked: Upquery) -> list[Key]:
        view = self._views.get(asked.view)
        return [] if view is None or view.is_full else [key for key in asked.keys if key not in view.arrangement.index]

    def answers(self, epoch: int) -> list[Effect]:
        """What has been asked for, before any of it is evicted again. What was not filled is asked for again."""
        answers: list[Effect] = []
        for each in self._asked:
            view = self._views.get(each.view)
            missing = self._missing(each)
            if view is None or any(self.is_too_large(each.view, key) for key in missing):
                answers.append(UpqueryRefused(each.request))
            elif missing:
                self.waiting.append(each)
            else:
                arrangement = view.arrangement
                values = [arrangement.index.get(key) for key in each.keys]
                rows = tuple([() if value is None else tuple(rows_of(arrangement.bag(value))) for value in values])
                answers.append(UpqueryAnswered(each.request, epoch, rows))
        self._asked = []
        return answers

    def refusals(self) -> list[UpqueryRefused]:
        """All views are gone."""
        return [UpqueryRefused(each.request) for each in (*self._asked, *self.waiting)]
