"""The vote application while ratings are added to it (paper, section 8.5): one of its processes.

`python -m apps.vote.migration DATA ROLE STORIES KEYS`. It says when it is ready and reads when to
start (of time.monotonic) and for how many seconds. From then on it reads or writes as fast as it
can, and says at the end what it did in each fifth of a second; all are lines of JSON. The role `switch`
installs the ratings and asks for one; `prepare` makes tables and stories, `load:COUNT:SEED` casts
votes, `undo` takes the ratings away.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import cycle

import numpy as np

from apps.vote.clients import schema
from apps.vote.millrace_client import MillraceClient
from apps.vote.requests import draw_keys
from millrace import Database, View, connect

DATABASE = "vote"
BIN_S = 0.2
BATCH_KEYS = 1_000
WRITE_ROWS = 100
LOAD_ROWS = 2_000
PROBE_KEYS = 100
READ_PAUSE_S = 10e-6
PROBE_PAUSE_S = 0.01
STARS = 5
SEEDS = {"vote": 11, "rate": 12, "read": 13, "probe": 14, "probe-anew": 14}
VOTES = "SELECT id, author, title, url, vcount FROM StoriesWithVC WHERE id = ?"
RATINGS = "SELECT id, author, title, url, score FROM StoriesWithRatings{} WHERE id = ?"

Work = Callable[[], tuple[int, int]]
"""Does one thing; how much of it succeeded, and how much was tried."""


def migration(reuse: bool) -> str:
    """What is added: with `reuse` on top of the votes that are counted already, else from the base tables."""
    table, rest = schema("migration").split("-- Form A", 1)
    on_top, anew = rest.split("-- Form B", 1)
    views = on_top if reuse else anew
    return table + views[views.index("CREATE") :]


def undo(reuse: bool) -> str:
    on_top = ("StoriesWithRatings", "StoryScore", "ScoreParts", "RatingSum")
    names = on_top if reuse else ("StoriesWithRatingsB", "StoryScoreB", "ScorePartsB")
    return "".join(f"DROP VIEW IF EXISTS {name};" for name in names) + "DROP TABLE IF EXISTS ratings;"


def ratings_query(reuse: bool) -> str:
    return RATINGS.format("" if reuse else "B")


def work_of(role: str, database: Database, stories: int, distribution: str) -> Work:
    drawn = draw_keys(distribution, stories, SEEDS[role], 500 * BATCH_KEYS)
    batches = cycle(drawn.reshape(-1, PROBE_KEYS if "probe" in role else WRITE_ROWS).tolist())
    match role:
        case "vote":
            votes = database.table("votes")

            def vote() -> tuple[int, int]:
                votes.insert_many([{"user": 0, "story_id": story} for story in next(batches)])
                return WRITE_ROWS, WRITE_ROWS

            return vote
        case "rate":
            ratings = database.table("ratings")

            def rate() -> tuple[int, int]:
                rows = [{"user": user, "story_id": story, "stars": STARS} for user, story in enumerate(next(batches))]
                ratings.insert_many(rows)
                return WRITE_ROWS, WRITE_ROWS

            return rate
        case "read":
            counted = database.view(VOTES)
            keys = cycle(drawn.tolist())

            def read() -> tuple[int, int]:
                counted.lookup(next(keys))
                time.sleep(READ_PAUSE_S)
                return 1, 1

            return read
        case "probe" | "probe-anew":
            rated = database.view(ratings_query(role == "probe"))

            def probe() -> tuple[int, int]:
                wanted = np.unique(next(batches)).tolist()
                missing = [story for story in wanted if rated.lookup(story, block=False) is None]
                if missing:
                    rated.lookup_many(missing)
                time.sleep(PROBE_PAUSE_S)
                return len(wanted) - len(missing), len(wanted)

            return probe
    raise ValueError(role)


def switch(database: Database, reuse: bool) -> dict[str, float]:
    """Install the ratings and ask for those of a story: what that took, in ms from the beginning.

    `answered` is the first answer, `kept` the first that comes from the maintained view.
    """
    started = time.monotonic()
    database.extend_program(migration(reuse))
    installed = time.monotonic()
    view = database.view(ratings_query(reuse))
    assert view.lookup(1)
    answered = time.monotonic()
    ready(view)
    times = {"installed": installed, "answered": answered, "kept": time.monotonic()}
    return {what: (moment - started) * 1000 for what, moment in times.items()}


def ready(view: View) -> None:
    """Ask until answers come from the maintained view."""
    while view.lookup(1, block=False) is None:
        view.lookup(1)
        time.sleep(0.001)


def warm(view: View, stories: int) -> None:
    """Ask for every story once: the application has been running for a while."""
    for first in range(1, stories + 1, BATCH_KEYS):
        view.lookup_many(range(first, min(first + BATCH_KEYS, stories + 1)))


def load_votes(database: Database, stories: int, distribution: str, count: int, seed: int) -> None:
    votes = database.table("votes")
    keys = draw_keys(distribution, stories, seed, count)
    for first in range(0, count, LOAD_ROWS):
        votes.insert_many([{"user": 0, "story_id": story} for story in keys[first : first + LOAD_ROWS].tolist()])


def main() -> None:
    data, role, stories, distribution = sys.argv[1:]
    if role == "prepare":
        client = MillraceClient(data)
        client.prepare(int(stories))
        client.close()
        return
    with connect(data, DATABASE) as database:
        reuse = distribution != "anew"
        match role.split(":"):
            case ["load", count, seed]:
                load_votes(database, int(stories), distribution, int(count), int(seed))
            case ["undo"]:
                database.extend_program(undo(reuse))
            case ["switch"]:
                wait_for_start()
                print(json.dumps(switch(database, reuse)), flush=True)
            case _:
                print(json.dumps(counted(role, database, int(stories), distribution)), flush=True)


def counted(role: str, database: Database, stories: int, distribution: str) -> list[list[int]]:
    work: Work | None = None
    if role in ("vote", "read"):
        view = database.view(VOTES)
        if role == "read":
            warm(view, stories)
        ready(view)
        work = work_of(role, database, stories, distribution)
    start, seconds = wait_for_start()
    # What there is only from now on is planned now.
    work = work or work_of(role, database, stories, distribution)
    done = [[0, 0] for _ in range(int(seconds / BIN_S) + 1)]
    while (moment := time.monotonic()) < start + seconds:
        succeeded, tried = work()
        found = done[min(int((moment - start) / BIN_S), len(done) - 1)]
        found[0] += succeeded
        found[1] += tried
    return done


def wait_for_start() -> tuple[float, float]:
    """When that is, and for how long."""
    print("{}", flush=True)
    start, seconds = json.loads(sys.stdin.readline())
    time.sleep(max(start - time.monotonic(), 0))
    return start, seconds


if __name__ == "__main__":
    main()
