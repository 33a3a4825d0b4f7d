"""The table versions that a worker's commits are checked against: those of the catalog, once no view needs older ones."""

from __future__ import annotations

from backend.network.messages import Acknowledged, SetTables
from backend.network.transport import Peer
from backend.views.worker_views import Hosting, WorkerViews
from controller.catalog import decode_table


class TableVersions:
    """`is_known`: a catalog has been heard of."""

    def __init__(self, hosting: Hosting, views: WorkerViews) -> None:
        self._hosting = hosting
        self._views = views
        self._held: SetTables | None = None
        self._waiting: list[tuple[Peer, int]] = []
        self.is_known = False
        self.catalog_version = 0
        self.next_table_id = 0

    def set(self, peer: Peer, request: int, message: SetTables) -> None:
        """Learn them, and say when they are in force."""
        if self.learn(message):
            peer.send(Acknowledged(), request)
        else:
            self._waiting.append((peer, request))

    def learn(self, tables: SetTables) -> bool:
        """Take over the catalog's table versions; True if they are in force at once."""
        held = self._held
        if tables.catalog_version > max(self.catalog_version, 0 if held is None else held.catalog_version):
            self._held = tables
            self._views.tables_changed(tables.versions, {table.id: table for table in map(decode_table, tables.changed)})
            self._take_over()
        return self._held is None and self._hosting.epochs.idle

    def _take_over(self) -> None:
        """Have what was learnt in force after the epoch in flight, unless views need other versions."""
        tables = self._held
        if tables is None or not self._views.allow(tables.versions):
            return
        self._held = None
        self.catalog_version = tables.catalog_version
        self.next_table_id = tables.next_table_id
        self._hosting.epochs.set_tables(tables.versions)
        if not self.is_known:
            self.is_known = True
            self._hosting.run([])  # what came before is answered now

    def answer(self) -> None:
        """Tell those who wait when the versions are in force."""
        self._take_over()
        if self._waiting and self._held is None and self._hosting.epochs.idle:
            waiting, self._waiting = self._waiting, []
            for peer, request in waiting:
                peer.send(Acknowledged(), request)
