"""The site before the first request: rows of every table, the same for the same seed and scale.

Every story and every comment has its author's own vote. A third of the comments are replies. Ribbons,
of those who have read a story, are there only if `ribbons` views are to have taken place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

from apps.lobsters.sampling import samplers, slug

Row = tuple[Any, ...]
Table = tuple[str, str, list[Row]]
"""Its name, the columns that are filled, and rows."""

USERS_MIN = 9_200
"""As in the paper; most of them never act."""
START = datetime(2018, 5, 1)
CONFIDENCE = "0.1828847834138887"
STORY_TEXT = ("just eleven", "<p>just eleven</p>\n")
COMMENT_TEXT = ("seventeen letters", "<p>seventeen letters</p>\n")
USER_COLUMNS = "id, username, email, password_digest, created_at, session_token, rss_token, mailing_list_token"
STORY_COLUMNS = "id, created_at, user_id, title, description, short_id, markeddown_description"
COMMENT_COLUMNS = (
    "id, created_at, updated_at, short_id, story_id, user_id, parent_comment_id, thread_id, comment, markeddown_comment"
)


def tables(variant: str, scale: float, seed: int = 1, ribbons: int = 0) -> Iterator[Table]:
    """Of `baseline`, with its counters, or of `natural`."""
    random = Random(seed)
    drawn = samplers(scale)
    stories = drawn.story_count
    user_count = max(int(USERS_MIN * scale), drawn.users.items)
    owners = [drawn.users.draw(random) + 1 for _ in range(stories)]
    comments = list(_comments(random, drawn.comments.items, stories, [drawn.users.draw(random) + 1 for _ in range(drawn.comments.items)]))
    is_baseline = variant == "baseline"
    yield "users", USER_COLUMNS, [_user(number) for number in range(user_count)]
    yield _stories(owners, comments, user_count, is_baseline)
    yield "taggings", "id, story_id, tag_id", [(story, story, 1) for story in range(1, stories + 1)]
    yield _written_comments(comments, user_count + stories, is_baseline)
    votes: list[Row] = [(story + 1, owner, story + 1, None, 1) for story, owner in enumerate(owners)]
    votes += [(stories + number + 1, author, story + 1, number + 1, 1) for number, (story, author, _) in enumerate(comments)]
    yield "votes", "id, user_id, story_id, comment_id, vote", votes
    if is_baseline:
        submitted, posted = Counter(owners), Counter(author for _, author, _ in comments)
        counts = [(f"user:{user}:stories_submitted", count) for user, count in sorted(submitted.items())]
        counts += [(f"user:{user}:comments_posted", count) for user, count in sorted(posted.items())]
        yield "keystores", "`key`, value", list(counts)
    seen: dict[tuple[int, int], str] = {}
    for number in range(ribbons):
        pair = drawn.users.draw(random) + 1, drawn.stories.draw(random) + 1
        seen[pair] = _time(user_count + stories + len(comments) + number // 40)
    yield "read_ribbons", "id, created_at, updated_at, user_id, story_id", [
        (number + 1, time, time, *pair) for number, (pair, time) in enumerate(seen.items())
    ]


def _comments(random: Random, count: int, stories: int, authors: list[int]) -> Iterator[tuple[int, int, int | None]]:
    """Story, author and the comment that is answered, if one is."""
    for number in range(count):
        round_, story = divmod(number, stories)
        is_reply = round_ and random.random() < 0.5
        yield story, authors[number], story + stories * random.randrange(round_) + 1 if is_reply else None


def _user(number: int) -> Row:
    name = f"user{number}"
    return number + 1, name, f"{name}@example.com", "x" * 60, _time(number), f"token{number}", f"rsstoken{number}", f"mtok{number}"


def _stories(owners: list[int], comments: list[tuple[int, int, int | None]], first: int, is_baseline: bool) -> Table:
    rows = []
    count: Counter[int] = Counter(story for story, _, _ in comments)
    by_others: Counter[int] = Counter(story for story, author, _ in comments if author != owners[story])
    for story, owner in enumerate(owners):
        text, html = STORY_TEXT
        row: Row = (story + 1, _time(first + 1 + story), owner, f"seed story {story}", text, slug(story), html)
        rows.append((*row, 1, -(2 + by_others[story]), count[story]) if is_baseline else row)
    return "stories", STORY_COLUMNS + (", upvotes, hotness, comments_count" if is_baseline else ""), rows


def _written_comments(comments: list[tuple[int, int, int | None]], first: int, is_baseline: bool) -> Table:
    rows = []
    for number, (story, author, parent) in enumerate(comments):
        time = _time(first + 1 + number)
        row: Row = (number + 1, time, time, slug(number), story + 1, author, parent, None, *COMMENT_TEXT)
        rows.append((*row, 1, CONFIDENCE) if is_baseline else row)
    return "comments", COMMENT_COLUMNS + (", upvotes, confidence" if is_baseline else ""), rows


def _time(number: int) -> str:
    return str(START + timedelta(seconds=number // 50))
