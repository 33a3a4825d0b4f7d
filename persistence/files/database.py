"""A LevelDB database whose damage does not go unnoticed.

Reading
- Every block that is read has its checksum verified. What does not fit is CorruptState, never data.

Writing
- One write at a time, whatever thread it comes from. What somebody waits for is *stamped* with the last epoch and the
  write's number, and noted in `persistence.files.acknowledged` once it is done. The stamp is the last thing in its batch.

Opening
- The files are inspected first (`persistence.files.inspection`). Then the last stamp must be there.
- A database whose compactions found damage can be written to no more: it is marked, and is not opened again until
  it is repaired.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

import plyvel

from dataflow.errors import Condition, CorruptState, Retryable
from persistence.files.acknowledged import NAME, AcknowledgementFile, last_acknowledgement
from persistence.files.compaction import compacting_behind
from persistence.files.free_space import LOG_BYTES_MAX, RESERVE_BYTES, disk_full, is_full
from persistence.files.inspection import EPOCH_KEY, STAMP, Stamp, inspect, is_new

BLOCK_CACHE_BYTES = 64 << 20
BLOOM_BITS_PER_KEY = 10
MARK = "DAMAGED"

log = logging.getLogger(__name__)


class DamageNoticed:
    """A context in which LevelDB's own errors become CorruptState, of which `note` is told."""

    def __init__(self, folder: Path, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._note = note

    def damage(self, error: BaseException) -> CorruptState:
        found = f"{self._folder}: {shown(error)}"
        self._note(found)
        return CorruptState(found)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, plyvel.CorruptionError):
            raise self.damage(error) from error


class ReadSource:
    """Where to read from: the database as it is, or a snapshot. Iterators have to be used within `reading`."""

    __slots__ = ("_get", "iterator", "reading")

    def __init__(self, origin: Any, reading: DamageNoticed) -> None:
        self._get = origin.get
        self.iterator = partial(origin.iterator, verify_checksums=True)
        self.reading = reading

    def get(self, key: bytes) -> bytes | None:
        try:
            found: bytes | None = self._get(key, None, verify_checksums=True)
        except plyvel.CorruptionError as error:
            raise self.reading.damage(error) from error
        return found


class LevelDatabase:
    """Opened by the constructor, which creates what is missing. `damage` says what was found since."""

    def __init__(self, folder: Path, fsync: bool) -> None:
        self.folder = folder
        self.damage = ""
        self._fsync = fsync
        self._has_failed = False
        folder.mkdir(parents=True, exist_ok=True)
        self._database = compacting_behind(lambda: _open(folder))
        self._reading = DamageNoticed(folder, self._note)
        self.now = ReadSource(self._database, self._reading)
        self._writing = Lock()
        self.stamp = self._last_stamp()
        self._acknowledged = AcknowledgementFile(folder, fsync, *self.stamp)
        self.approximate_size: Callable[[bytes, bytes], int] = self._database.approximate_size

    def snapshot(self) -> ReadSource:
        """The state as of now, for as long as it is kept."""
        return ReadSource(self._database.snapshot(), self._reading)

    def batch(self, is_durable: bool = False) -> Any:
        """A batch for `write` or `write_stamped`; `is_durable`: on disk when it is written, if the database waits for that."""
        return self._database.write_batch(sync=self._fsync and is_durable)

    def last_batch(self) -> Any:
        """A batch with which everything is on disk, however the database waits for others."""
        return self._database.write_batch(sync=True)

    def write(self, batch: Any) -> None:
        """What nobody waits for, and what does no harm if it is lost."""
        with self._writing:
            self._written(batch)

    def write_stamped(self, batch: Any, epoch: int | None = None, is_durable: bool = True) -> None:
        """What somebody waits for; `epoch` is the last one with it, if it is another than before."""
        with self._writing:
            last = self.stamp[0] if epoch is None else epoch
            stamp = last, self.stamp[1] + 1
            batch.put(EPOCH_KEY, STAMP.pack(*stamp))
            self._written(batch)
            self.stamp = stamp
            if is_durable or not self._fsync:
                self._acknowledged.write(*stamp)

    def _written(self, batch: Any) -> None:
        if self._has_failed:
            raise disk_full(self.folder, RESERVE_BYTES)
        try:
            batch.write()
        except plyvel.CorruptionError as error:
            damage = self._reading.damage(error)
            (self.folder / MARK).write_text(self.damage)
            raise damage from error
        except plyvel.IOError as error:
            self._has_failed = True  # what follows half a write in a log could not be read again
            if is_full(error):
                self._acknowledged.failed()
            raise

    def close(self, is_clean: bool) -> None:
        """`is_clean`: all of it is on disk."""
        self._database.close()
        self._acknowledged.close(is_clean)

    def _note(self, found: str) -> None:
        if not self.damage:
            log.critical("damaged: %s", found)
            self.damage = found

    def _last_stamp(self) -> Stamp:
        """Raises CorruptState if an acknowledged write is missing."""
        try:
            acknowledged = last_acknowledgement(self.folder)
            value = self.now.get(EPOCH_KEY) or b""
            epoch, number = STAMP.unpack(value) if len(value) == STAMP.size else (int.from_bytes(value, "big"), 0)
            if acknowledged is None and number:
                raise CorruptState(f"{self.folder / NAME} is missing: which writes must be there is not known")
            if acknowledged is not None and acknowledged.holds and number < acknowledged.number:
                missing = f"{acknowledged.number - number} acknowledged writes after epoch {epoch}, up to epoch {acknowledged.epoch}"
                raise CorruptState(f"{self.folder}: {missing}, are missing from its log")
        except CorruptState:
            self._database.close()
            raise
        return epoch, number


def shown(error: BaseException) -> str:
    """LevelDB's words."""
    text = error.args[0] if error.args else error
    return (text.decode(errors="replace") if isinstance(text, bytes) else str(text)).removeprefix("Corruption: ")


def _open(folder: Path) -> plyvel.DB:
    """Raises CorruptState, with nothing changed in the folder, if something acknowledged is not there."""
    if (folder / MARK).exists():
        raise CorruptState((folder / MARK).read_text())
    if is_new(folder):
        return open_files(folder, create_if_missing=True)
    acknowledged = last_acknowledgement(folder)
    inspect(folder, acknowledged)
    try:
        return open_files(folder)
    except plyvel.CorruptionError as error:
        inspect(folder, acknowledged, checked=True)  # which says more, or mends it
        try:
            return open_files(folder)
        except plyvel.CorruptionError:
            raise CorruptState(f"{folder}: {shown(error)}") from error


def open_files(folder: Path, create_if_missing: bool = False) -> plyvel.DB:
    try:
        return plyvel.DB(
            str(folder),
            create_if_missing=create_if_missing,
            paranoid_checks=True,
            write_buffer_size=LOG_BYTES_MAX,
            lru_cache_size=BLOCK_CACHE_BYTES,
            bloom_filter_bits=BLOOM_BITS_PER_KEY,
            compression=None,  # costs as much as all other work on files; old blocks are read as they are
        )
    except plyvel.IOError as error:
        if "lock" in str(error).lower():
            raise Retryable(Condition.UNKNOWN_ERROR, f"{folder} is in use by another process") from error
        if is_full(error):
            raise disk_full(folder, RESERVE_BYTES) from error
        raise CorruptState(f"{folder} cannot be opened: {shown(error)}") from error
