"""The last write that a shard has acknowledged, in a small file beside LevelDB's.

LevelDB takes the end of a log that makes no sense for a write that nobody waited for. That is so only if it comes
after all that was acknowledged, which this file tells. Every write of the store that somebody waits for has a number,
one more than the one before, and is written down here when it is done. The file is not waited for: after
a power cut it may name an earlier write than the last, never one that is not on disk.

With durability "os" nothing is waited for, so after a power cut it may name a write that is not on disk: then, and then
only, it says nothing. A power cut is known by the machine's boot, which is another then.
"""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from dataflow.errors import CorruptState

NAME = "ACKNOWLEDGED"
_MAGIC = b"millrace"
_LAYOUT = struct.Struct("<8sQQ16s???")
_CHECKSUM = struct.Struct("<I")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """`number` is that of the last acknowledged write, `epoch` the last epoch then."""

    number: int = 0
    epoch: int = 0
    boot: bytes = bytes(16)
    is_synced: bool = True
    """The writes were on disk before they were acknowledged."""
    is_closed: bool = False
    """The store was closed, and all of it was on disk."""
    has_failed: bool = False
    """A write after it did not get through: the disk was full."""

    @property
    def holds(self) -> bool:
        """Whether the write must be there."""
        return self.is_synced or self.is_closed or self.boot == this_boot()


def this_boot() -> bytes:
    return uuid.UUID(_BOOT.read_text().strip()).bytes if _BOOT.exists() else bytes(16)


def last_acknowledgement(folder: Path) -> Acknowledgement | None:
    """None if the store is older than such files are, or new; raises CorruptState if the file is damaged."""
    try:
        data = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    if not data:
        return None  # a crash came before its first write
    content, checksum = data[: _LAYOUT.size], data[_LAYOUT.size :]
    if len(data) != _LAYOUT.size + _CHECKSUM.size or _CHECKSUM.pack(zlib.crc32(content)) != checksum:
        raise CorruptState(f"{folder / NAME} is damaged: which writes must be there is not known")
    _, *fields = _LAYOUT.unpack(content)
    return Acknowledgement(*fields)


class AcknowledgementFile:
    """Written in place, in one piece, so it takes no room once it is there."""

    def __init__(self, folder: Path, is_synced: bool, epoch: int, number: int) -> None:
        (folder / NAME).touch(0o600)
        self._file = (folder / NAME).open("r+b", buffering=0)
        self._last = Acknowledgement(boot=this_boot(), is_synced=is_synced)
        self.write(epoch, number)

    def write(self, epoch: int, number: int) -> None:
        self._put(replace(self._last, number=number, epoch=epoch, is_closed=False))

    def failed(self) -> None:
        """A write did not get through for want of room."""
        self._put(replace(self._last, has_failed=True))

    def close(self, is_clean: bool) -> None:
        """`is_clean`: everything is on disk."""
        if is_clean:
            self._put(replace(self._last, is_closed=True))
            os.fsync(self._file.fileno())
        self._file.close()

    def _put(self, acknowledgement: Acknowledgement) -> None:
        self._last = last = acknowledgement
        content = _LAYOUT.pack(
            _MAGIC, last.number, last.epoch, last.boot, last.is_synced, last.is_closed, last.has_failed
        )
        os.pwrite(self._file.fileno(), content + _CHECKSUM.pack(zlib.crc32(content)), 0)
