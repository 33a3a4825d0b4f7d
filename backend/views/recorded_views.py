"""The views that this process knows to be in the program (see `controller.program`).

A view is recorded when this process gets its first answer from it: once, whatever comes after.
What was recorded when the process began is *inherited*: a query that asks for one of these is not
new, even if it is asked for the first time here.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from backend.network.messages import AddView
from backend.views.view_definition import ViewDefinition
from controller.program import MaintainedQuery


class RecordedViews:
    def __init__(self) -> None:
        self.record: Callable[[MaintainedQuery], None] | None = None
        self.inherited: set[bytes] = set()
        self.known: set[bytes] = set()
        """Inherited, or recorded here since."""
        self._asked: dict[bytes, float] = {}

    def inherit(self, names: set[bytes]) -> None:
        self.inherited |= names
        self.known |= names

    def answered(self, definition: ViewDefinition) -> None:
        """A worker has the view."""
        if definition.name not in self.known:
            self.known.add(definition.name)
            if self.record is not None:
                self.record(
                    MaintainedQuery(
                        definition.name,
                        definition.node,
                        definition.key,
                        definition.order,
                        definition.table_versions,
                        definition.names,
                        self._asked.pop(definition.name, 0.0) or time.time(),
                    )
                )

    def forget(self, name: bytes) -> None:
        """It could not be recorded."""
        self.known.discard(name)

    def request(self, definition: ViewDefinition) -> AddView:
        """What makes a worker maintain the view, which does not know it: it is new, or has retired."""
        self.forget(definition.name)
        since = self._asked[definition.name] = time.time()
        return definition.request(since)
