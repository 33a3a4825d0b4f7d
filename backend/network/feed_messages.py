"""Messages about change feeds: see `persistence.change_feeds`."""

from __future__ import annotations

from dataclasses import dataclass

from persistence.change_feeds import FeedRecord


@dataclass(frozen=True, slots=True)
class KeepFeed:
    """Keep the changes of a table or named view, by its id, from now on; answered by Acknowledged when that is durable.

    `view` is the maintained view that shows all rows of the named one, empty for a table. It is another one after a change of
    its tables: what was said as of an earlier catalog is ignored.
    """

    feed: int
    view: bytes
    seconds: int
    bytes_max: int
    catalog_version: int


@dataclass(frozen=True, slots=True)
class ForgetFeed:
    """Answered by Acknowledged, also if there is no such feed."""

    feed: int


@dataclass(frozen=True, slots=True)
class AskFeeds:
    """What is kept; answered by KeptFeeds."""


@dataclass(frozen=True, slots=True)
class FeedState:
    """Changes of the epochs after `floor`, up to `latest`, can be read. `floor` is -1 until a view was seen for the first time.

    `is_followed`: the view is maintained, so its changes are recorded as they happen.
    """

    feed: int
    floor: int
    latest: int
    size_bytes: int
    seconds: int
    bytes_max: int
    is_followed: bool
    view: bytes


@dataclass(frozen=True, slots=True)
class KeptFeeds:
    feeds: list[FeedState]


@dataclass(frozen=True, slots=True)
class ReadFeed:
    """Some changes of since < epoch ≤ until; answered by FeedRead, or FeedGone.

    `after` is the number of the last record of epoch `since` that was read before, -1 if that epoch is not wanted.
    """

    feed: int
    since: int
    until: int
    after: int = -1


@dataclass(frozen=True, slots=True)
class FeedRead:
    records: list[FeedRecord]
    more: bool


@dataclass(frozen=True, slots=True)
class FeedGone:
    """Not kept any more, or never: changes can be read after `floor`, -1 if there is no such feed."""

    floor: int


@dataclass(frozen=True, slots=True)
class CountFeed:
    """How many changes the first epochs of since < epoch ≤ until have, as far as it takes for `rows_max`; answered by FeedCounts, or FeedGone."""

    feed: int
    since: int
    until: int
    rows_max: int


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """(epoch, changes)"""

    counts: list[tuple[int, int]]


FeedMessage = KeepFeed | ForgetFeed | AskFeeds | KeptFeeds | ReadFeed | FeedRead | FeedGone | CountFeed | FeedCounts
