"""The views of this machine's workers as other processes read them, without asking anybody.

A worker says with its answers in which file the view is; from then on keys that are there
are read from it. A view that is closed is forgotten, and the next answer tells where it is
now. When a worker has moved, everything is forgotten: a file that its dead predecessor left
on another machine would never be closed.
"""

from __future__ import annotations

from backend.sharded_views import ShardedReader, ShardedViews
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import is_possible
from backend.view_definition import ViewDefinition
from backend.view_range import Range

UNREACHABLE_MAX = 10_000


class SharedViews:
    def __init__(self, sharded: ShardedViews | None = None) -> None:
        """`sharded` are the views of several workers, whose keys are in more than one file."""
        self._sharded = sharded
        self._readers: dict[bytes, SharedViewReader] = {}
        self._elsewhere: set[str] = set()
        self.hits = 0
        self.misses = 0

    def keys(self, view: bytes) -> SharedViewReader | ShardedReader | None:
        """Where keys of the view can be read, if it is shared and was asked for before."""
        return self.reader(view) if self._sharded is None else self._sharded.reader(view)

    def reader(self, view: bytes) -> SharedViewReader | None:
        """The view's only file, if it has just one."""
        found = self._readers.get(view)
        if found is not None and found.is_gone:
            del self._readers[view]
            return None
        return found

    def lookup(self, definition: ViewDefinition, keys: bytes, part: Range | None = None) -> list[bytes] | None:
        """The rows of each key, keys and rows encoded, as of one epoch; None if a worker has to be asked."""
        reader = self.reader(definition.name)
        if reader is None or part is not None:
            return None
        named = definition.naming.names(definition.decode_keys(keys))
        found = None if named is None else reader.get_many(named)
        if found is None or None in found:
            self.misses += 1
            return None
        self.hits += 1
        return found  # type: ignore[return-value]

    def learn(self, view: bytes, file: str) -> None:
        """A worker shows the view in this file."""
        if not file or self.reader(view) is not None or file in self._elsewhere:
            return
        reader = SharedViewReader.open(file) if is_possible() else None
        if reader is not None:
            self._readers[view] = reader
        elif len(self._elsewhere) < UNREACHABLE_MAX:
            self._elsewhere.add(file)

    def forget(self) -> None:
        for reader in self._readers.values():
            reader.leave()
        self._readers.clear()
        self._elsewhere.clear()
