"""Large batches where no disk is waited for: views follow while an epoch is written, and nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import psutil

from millrace import connect
from tests.serving import MillraceServer

PROGRAM = """
CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(20) NOT NULL);
CREATE TABLE votes (user INT NOT NULL, story_id INT NOT NULL, KEY (story_id));
CREATE VIEW counts AS SELECT s.id, s.title, COUNT(v.user) AS n FROM stories s LEFT JOIN votes v ON v.story_id = s.id GROUP BY s.id, s.title;
CREATE VIEW voters AS SELECT v.user, s.id, s.title FROM votes v JOIN stories s ON s.id = v.story_id;
"""
STORIES, ROWS, BATCHES = 200, 2_000, 24


def test_views_equal_their_queries_after_large_batches_and_a_killed_worker(tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--durability=os")
    try:
        with connect(str(tmp_path / "data")) as database:
            database.execute("CREATE DATABASE d")
        with connect(str(tmp_path / "data"), "d") as database:
            database.extend_program(PROGRAM)
            database.table("stories").insert_many([{"id": n, "title": f"story {n}"} for n in range(STORIES)])
            counts = database.view("SELECT id, title, n FROM counts WHERE id = ?")
            voters = database.view("SELECT user, title FROM voters WHERE user = ? AND id = ?")
            chance, written = np.random.default_rng(1), Counter[tuple[int, int]]()
            half = threading.Event()
            killer = threading.Thread(target=lambda: (half.wait(), psutil.Process(server.status()["shards"][0]["process"]).kill()))
            killer.start()
            for batch in range(BATCHES):
                stories, users = chance.zipf(1.3, ROWS) % STORIES, chance.integers(0, 50, ROWS)
                if batch == BATCHES // 2:
                    half.set()
                database.table("votes").insert_columns({"user": users, "story_id": stories})
                written.update(zip(users.tolist(), stories.tolist()))
                if half.is_set():
                    killer.join()
                latest = STORIES + batch  # a story and its votes are one epoch
                with database.transaction() as transaction:
                    transaction.table("stories").insert(id=latest, title=f"story {latest}")
                    transaction.table("votes").insert_columns({"user": users[:300] % 5, "story_id": np.full(300, latest)})
                written.update((user % 5, latest) for user in users[:300].tolist())
                by_story = Counter[int]()
                for (_, story), count in written.items():
                    by_story[story] += count
                found = counts.lookup_many(range(STORIES + BATCHES))
                assert [rows for rows in found if rows] == [[(n, f"story {n}", by_story[n])] for n in range(latest + 1)]
                pairs = list(written)[:50] + list(written)[-5:]
                assert [len(rows) for rows in voters.lookup_many(pairs)] == [written[pair] for pair in pairs]
        cursor = server.connect("d").cursor()
        cursor.execute("SELECT user, story_id, COUNT(*) FROM votes GROUP BY user, story_id")
        assert {(user, story): count for user, story, count in cursor.fetchall()} == written
    finally:
        server.stop()
