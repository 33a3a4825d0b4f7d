"""What the site's users ask for: pages by the mix of `mix.json`, with who asks and about what."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from importlib import resources
from itertools import accumulate
from random import Random
from typing import Any

from apps.lobsters.sampling import SLUGS, samplers, slug

Request = tuple[str, dict[str, Any]]
"""The page, and what the request says."""


def requests(scale: float, seed: int, now: datetime) -> Iterator[Request]:
    """Without end. All have the time `now`: whoever sends them may give another."""
    random = Random(seed)
    drawn = samplers(scale)
    stories, comments = drawn.story_count, drawn.comments.items
    weights: dict[str, int] = json.loads(resources.files("apps.lobsters").joinpath("mix.json").read_text())["weights"]
    names, bounds = list(weights), list(accumulate(weights.values()))
    while True:
        page = names[bisect_right(bounds, random.randrange(bounds[-1]))]
        user = drawn.users.draw(random)
        request: dict[str, Any] = {"user_id": user + 1, "username": f"user{user}", "uid": str(user), "now": now}
        match page:
            case "story" | "story_upvote" | "story_downvote":
                request["story_short_id"] = slug(drawn.stories.draw(random))
            case "user":
                request["target_username"] = f"user{drawn.users.draw(random)}"
            case "comment_upvote" | "comment_downvote":
                request["comment_short_id"] = slug(drawn.comments.draw(random))
            case "comment_new" | "comment_reply":
                story = drawn.commented.draw(random)
                request["story_short_id"] = slug(story)
                request["parent_short_id"] = slug(story + stories * random.randrange(2))
                request["new_short_id"] = slug(random.randrange(comments, SLUGS))
            case "submit":
                request["new_short_id"] = slug(random.randrange(stories, SLUGS))
                request["title"] = f"Story {request['new_short_id']}"
        yield page, request
