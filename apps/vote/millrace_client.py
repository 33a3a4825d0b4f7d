"""The application on millrace, through the client library."""

from __future__ import annotations

import numpy as np

from apps.vote.clients import schema, story_batches
from apps.vote.requests import Array
from millrace import View, connect

DATABASE = "vote"
STORY = "SELECT id, author, title, url, vcount FROM StoriesWithVC WHERE id = ?"

COLUMNS_FROM_KEYS = 64
"""For fewer keys rows are quicker than columns."""


class MillraceClient:
    def __init__(self, data: str) -> None:
        self._database = connect(data, DATABASE)
        self._votes = self._database.table("votes")
        self._view: View | None = None

    def prepare(self, stories: int) -> None:
        self._database.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        self._database.extend_program(schema("natural"))
        table = self._database.table("stories")
        for rows in story_batches(stories):
            table.insert_many([dict(zip(("id", "author", "title", "url"), row)) for row in rows])

    def read(self, ids: Array) -> int:
        if self._view is None:
            self._view = self._database.view(STORY)
        if len(ids) < COLUMNS_FROM_KEYS:
            return sum(map(len, self._view.lookup_many(ids.tolist())))
        return len(self._view.lookup_columns(ids))

    def vote(self, ids: Array) -> None:
        self._votes.insert_columns({"user": np.zeros(len(ids), np.int64), "story_id": ids})

    def close(self) -> None:
        self._database.close()
