"""Requests for a small Lobsters site, of every kind of page equally often: what the load generator asks for rarely is asked here, too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any


class Site:
    """Draws requests for what is there, and counts what they add; the first ones build the site up."""

    def __init__(self, random: Random, users: int = 4, stories: int = 6, comments: int = 10) -> None:
        self._random = random
        self._users, self._stories, self._comments = users, stories, comments
        self._story_of: list[int] = []
        self._submitted = 0
        self._now = datetime(2024, 1, 1)

    def requests(self, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """(page, values): logins, stories and comments first, then `count` of every kind."""
        for user in range(1, self._users + 1):
            yield "login", self._by(user)
        for _ in range(self._stories):
            yield "submit", self._submission()
        for _ in range(self._comments):
            yield "comment_new", self._comment()
        for page in self._drawn(count):
            match page:
                case "submit":
                    yield page, self._submission()
                case "comment_new":
                    yield page, self._comment()
                case "comment_reply":
                    parent = self._random.randrange(len(self._story_of))
                    story = self._story_of[parent]
                    yield page, self._comment(story) | {"parent_short_id": f"c{parent:05}"}
                case _:
                    yield page, self._by(self._random.randint(1, self._users))

    def _drawn(self, count: int) -> Iterator[str]:
        """Every kind of page in every round, in another order."""
        votes = ["comment_upvote", "story_upvote", "comment_downvote", "story_downvote"] * 2
        reads = ["story"] * 4 + ["frontpage", "user", "comments", "recent"]
        drawn: list[str] = []
        for _ in range(count):
            if not drawn:
                drawn = [*votes, *reads, "comment_new", "comment_reply", "submit", "login", "logout"]
                self._random.shuffle(drawn)
            yield drawn.pop()

    def _by(self, user: int) -> dict[str, Any]:
        random = self._random
        self._now += timedelta(minutes=random.randint(1, 30))
        return {
            "user_id": user,
            "username": f"user{user}",
            "uid": str(user),
            "now": self._now,
            "target_username": f"user{random.randint(1, self._users)}",
            "story_short_id": f"s{random.randrange(max(1, self._submitted)):05}",
            "comment_short_id": f"c{random.randrange(max(1, len(self._story_of))):05}",
        }

    def _submission(self) -> dict[str, Any]:
        number = self._submitted
        self._submitted += 1
        return self._by(self._random.randint(1, self._users)) | {"new_short_id": f"s{number:05}", "title": f"Story {number}"}

    def _comment(self, story: int | None = None) -> dict[str, Any]:
        story = self._random.randrange(self._submitted) if story is None else story
        new = len(self._story_of)
        self._story_of.append(story)
        user = self._random.randint(1, self._users)
        return self._by(user) | {"new_short_id": f"c{new:05}", "story_short_id": f"s{story:05}"}
