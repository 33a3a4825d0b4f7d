"""Reading a store on a disk that is too full to open it.

LevelDB writes when it is opened: what its logs hold goes into tables, a new log and a new MANIFEST begin. So a *shadow* is
opened in its place, a folder on another file system: with links to the tables, which are never changed, and copies
of all else. What is written to the shadow is lost with it; so nothing is that anybody waits for. The store's own folder is
locked as if it were open, and stays as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import shutil
import tempfile
from io import FileIO
from pathlib import Path

import plyvel

from dataflow.errors import Condition, CorruptState, MillraceError, Retryable
from persistence.files.acknowledged import last_acknowledgement
from persistence.files.database import MARK, LevelDatabase
from persistence.files.free_space import RESERVE_BYTES, disk_full, free_bytes
from persistence.files.inspection import is_new, read_manifest, table_path

MARGIN_BYTES = 1 << 20
"""For a MANIFEST, and what a file system takes for itself."""
_TABLES = (".ldb", ".sst")

log = logging.getLogger(__name__)


class Shadow:
    """A database to read a folder's rows from; raises error 1021 if there is no room for that either."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.needed_bytes = needed_bytes(folder)
        self._lock = _locked(folder)
        place = shadow_of(folder)
        try:
            remove_shadow(folder)
            place.mkdir(mode=0o700, parents=True)
            tables = [table_path(folder, number) for number in read_manifest(folder, checked=False).tables]
            for path in tables:  # no others: a link to what is no table any more would be written to
                (place / path.name).symlink_to(path.resolve())
            for path in folder.iterdir():
                if path.is_file() and path.suffix not in _TABLES and path.name not in ("LOCK", "LOG", "LOG.old"):
                    shutil.copyfile(path, place / path.name)
            self.database = LevelDatabase(place, fsync=False)
            for path in folder.iterdir():
                if path.suffix in _TABLES and path not in tables:
                    path.unlink()  # of a compaction that failed; LevelDB removes such when it opens a database
        except CorruptState as error:
            self._release()
            raise CorruptState(error.arguments[0].replace(str(place), str(folder))) from error
        except (OSError, plyvel.IOError) as error:
            self._release()
            log.error("%s cannot be read: no room in %s: %s", folder, place.parent, error)
            raise disk_full(folder, needed_bytes(folder)) from error

    def close(self) -> None:
        self.database.close(is_clean=False)
        self._release()

    def _release(self) -> None:
        remove_shadow(self._folder)
        self._lock.close()


def open_database(folder: Path, fsync: bool) -> tuple[LevelDatabase, Shadow | None]:
    """The folder's database, or that of a shadow if the disk is too full."""
    if not _needs_shadow(folder):
        remove_shadow(folder)
        try:
            return LevelDatabase(folder, fsync), None
        except MillraceError as error:
            if error.condition is not Condition.DISK_FULL or is_new(folder):
                raise
    log.error("%s is opened for reading only: the disk is full", folder)
    shadow = Shadow(folder)
    return shadow.database, shadow


def _needs_shadow(folder: Path) -> bool:
    """Whether the disk is too full to open the folder itself, or has lately been for a write of it."""
    if not folder.exists() or is_new(folder) or (folder / MARK).exists():
        return False
    free = free_bytes(folder)
    if _has_failed(folder):
        return free < needed_bytes(folder)
    return free < MARGIN_BYTES + sum(path.stat().st_size for path in folder.glob("*.log"))


def needed_bytes(folder: Path) -> int:
    """How much must be left for writes to go on.

    If one has failed, that is likely to be due to a compaction, which makes new files of all in level 0 before it removes those.
    """
    with contextlib.suppress(CorruptState):
        if _has_failed(folder):
            tables = read_manifest(folder, checked=False).tables.values()
            return RESERVE_BYTES + sum(size for level, size in tables if level == 0)
    return RESERVE_BYTES


def _has_failed(folder: Path) -> bool:
    acknowledged = last_acknowledgement(folder)
    return acknowledged is not None and acknowledged.has_failed


def shadow_of(folder: Path) -> Path:
    """The same each time, so that what a killed process has left is found."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else Path(tempfile.gettempdir())
    return place / f"millrace-read-only-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"


def remove_shadow(folder: Path) -> None:
    shutil.rmtree(shadow_of(folder), ignore_errors=True)


def _locked(folder: Path) -> FileIO:
    """What LevelDB holds while a database is open."""
    held = FileIO(folder / "LOCK", "a")
    try:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise Retryable(Condition.UNKNOWN_ERROR, f"{folder} is in use by another process") from error
    return held
