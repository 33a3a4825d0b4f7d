"""The pages of the Lobsters workload, run as its client runs them.

`apps/lobsters/queries.json` says which statements a page sends, where each parameter comes from
and when a statement is left out. Whoever executes them is given here as a function, so the
same request goes to several servers and variants. Hotness is computed in the exact mode of the
workload (from what the page reads anyway), so that both variants derive the same values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from importlib import resources
from random import Random
from typing import Any

Pages = Mapping[str, Mapping[str, list[dict[str, Any]]]]

_WHEN = re.compile(r"(\S+) returned (no row|a row|rows)")
_ROWS_OF = re.compile(r"number of rows of (\S+)")


@dataclass(frozen=True)
class Result:
    rows: list[dict[str, Any]] = field(default_factory=list)
    insert_id: int = 0


Execute = Callable[[str, list[Any], bool], Result]
"""SQL with `?`, a value for each, and whether it is a read."""


def pages() -> Pages:
    found: Pages = json.loads(resources.files("apps.lobsters").joinpath("queries.json").read_text())
    return found


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


def run_page(page: str, statements: list[dict[str, Any]], request: dict[str, Any], execute: Execute) -> None:
    """Every statement of the page that the request calls for, in order."""
    results: dict[str, Result] = {}
    for statement in statements:
        name: str = statement["name"]
        results[name] = Result()
        condition = _WHEN.match(statement.get("when", ""))
        if condition is not None and bool(results[condition[1]].rows) == (condition[2] == "no row"):
            continue
        sql: str = statement["sql"]
        values: list[Any] = []
        left_out = False
        for parameter in statement["params"]:
            found = _Source(page, request, results).value(parameter)
            if parameter["type"].endswith("[]"):
                left_out = left_out or not found
                sql = sql.replace("?*", ", ".join("?" * len(found)), 1)
                values += found
            else:
                values.append(found)
        if not left_out:
            results[name] = execute(sql, values, statement["kind"] == "read")


@dataclass(frozen=True)
class _Source:
    """Where the parameters of one page come from."""

    page: str
    request: dict[str, Any]
    results: dict[str, Result]

    def value(self, parameter: dict[str, Any]) -> Any:
        if parameter["name"] == "hotness":
            return self._hotness()
        found = self._of(parameter["source"])
        match parameter["type"]:
            case "int":
                return None if found is None else int(found)
            case "decimal":
                return Decimal(found).quantize(Decimal("1e-16"))
            case _:
                return found

    def _of(self, source: str) -> Any:
        kind, _, rest = source.partition(":")
        match kind:
            case "req":
                return self.request[rest]
            case "clock":
                return self.request["now"]
            case "const":
                return rest
            case "row":
                query, column = rest.rsplit(".", 1)
                return self.results[query].rows[0][column]
            case "set":
                query, column = rest.rsplit(".", 1)
                return sorted({row[column] for row in self.results[query].rows} - {None})
            case "insert_id":
                return self.results[rest].insert_id
            case "calc":
                return self._computed(rest)
        raise AssertionError(source)

    def _computed(self, text: str) -> Any:
        counted = _ROWS_OF.match(text)
        if counted is not None:
            return len(self.results[counted[1]].rows)
        if " / " in text:  # the confidence of a comment
            row = self.results[f"{self.page}.comment"].rows[0]
            return Decimal(row["upvotes"]) / (row["upvotes"] + row["downvotes"])
        parts = [each[1:-1] if each.startswith("'") else self.request["uid"] if each == "uid" else str(self._of(each)) for each in text.split(" + ")]
        return "".join(parts)

    def _hotness(self) -> Decimal:
        """Smaller is hotter: tags, own votes with the one being cast, and what others' comments got."""
        if self.page == "submit":
            tags, score = self.results["submit.tag"].rows, 1
        else:
            tags = self.results[f"{self.page}.hot_tags"].rows
            (story,) = self.results[f"{self.page}.story"].rows
            cast = {"story_upvote": 1, "story_downvote": -1}.get(self.page, 0)
            score = story["upvotes"] - story["downvotes"] + cast
        comments = self.results.get(f"{self.page}.hot_comments", Result()).rows
        total = sum(int(each["hotness_mod"]) for each in tags) + score
        return Decimal(-(total + sum(each["upvotes"] - each["downvotes"] for each in comments)))
