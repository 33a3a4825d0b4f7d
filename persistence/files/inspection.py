"""Whether a shard's files hold all that was acknowledged, found out before LevelDB opens them and changes anything.

LevelDB itself, with `paranoid_checks`, refuses a log or MANIFEST with a wrong checksum. It does not notice

- a CURRENT that is missing: it makes a new database and removes the files of the old one;
- a log that is missing, is shorter than it was, or has zeros in it;
- a record in the last 32 KB whose length is damaged: all that follows is passed over as what a crash left half-written.

So here every record of the logs has to be there, with the sequence numbers in a row, from the last that the MANIFEST
knows of up to the last acknowledged write (`persistence.files.acknowledged`). What comes after that and makes no sense
was never acknowledged, and is cut off.
"""

from __future__ import annotations

import logging
import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

from dataflow.errors import CorruptState
from persistence.files.acknowledged import Acknowledgement
from persistence.files.log_records import Fault, Record, read_records, records_after

EPOCH_KEY = b"\0epoch"
STAMP = struct.Struct(">QQ")
"""The value of that key: the last epoch, and the number of the write."""
_STAMPED = bytes((1, len(EPOCH_KEY))) + EPOCH_KEY + bytes((STAMP.size,))
"""What comes before the stamp in a batch: it is the last thing that is put."""
_BATCH = struct.Struct("<QI")
LOST = "lost"
"""The folder for what is cut off; LevelDB's repair uses the same."""
_DATABASE_FILE = re.compile(r"\d+\.(?:ldb|sst|log)|MANIFEST-\d+|ACKNOWLEDGED|CURRENT")

log = logging.getLogger(__name__)

Stamp = tuple[int, int]
"""(epoch, number of the write)"""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """What one write put into a log, and its stamp, if somebody waited for it."""

    sequence: int
    count: int
    stamp: Stamp | None


@dataclass(slots=True)
class Manifest:
    """What LevelDB knows of its files: the oldest log that is needed, and tables by number with (level, bytes)."""

    log_number: int = 0
    last_sequence: int = 0
    tables: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Break:
    """Where the writes in a log stop following each other: all before `offset` are whole."""

    path: Path
    offset: int
    what: str
    last: Stamp | None
    """The last stamp before it."""
    following: tuple[Stamp | None] | None
    """The stamp of what is whole after it, if anything is."""

    @property
    def damage(self) -> CorruptState:
        known = f"after epoch {self.last[0]}" if self.last else "from the beginning of this log on"
        stamp = self.following[0] if self.following else None
        until = f" and before epoch {stamp[0]}" if stamp else ""
        return CorruptState(f"{self.path}: {self.what}: writes are missing {known}{until}")


def is_new(folder: Path) -> bool:
    """Whether nothing of a database is there."""
    return not any(_DATABASE_FILE.fullmatch(path.name) for path in folder.iterdir())


def inspect(folder: Path, acknowledged: Acknowledgement | None, checked: bool = False) -> None:
    """Raises CorruptState if something acknowledged is missing; cuts off what a crash left half-written.

    With `checked`, checksums are verified, too: that takes seconds, and is for files that LevelDB has refused.
    """
    broken = find_break(folder, checked)
    if broken is None:
        return
    is_short = broken.last is not None and acknowledged is not None and broken.last[1] < acknowledged.number
    if (broken.following or is_short) and (acknowledged is None or acknowledged.holds):
        raise broken.damage
    if not checked and not broken.following:
        return  # which LevelDB passes over by itself
    log.warning("%s: %s: what follows was not acknowledged, and is cut off", broken.path, broken.what)
    cut(broken)


def cut(broken: Break) -> None:
    """Cut off what begins at a break, with all later logs; it stays in `lost/`."""
    lost = broken.path.parent / LOST
    lost.mkdir(exist_ok=True)
    tail = broken.path.read_bytes()[broken.offset :]
    (lost / f"{broken.path.name}-from-{broken.offset}").write_bytes(tail)
    os.truncate(broken.path, broken.offset)
    for path in all_logs(broken.path.parent):
        if path.stem > broken.path.stem:
            path.rename(lost / path.name)


def find_break(folder: Path, checked: bool) -> Break | None:
    """The first place in the logs where something is wrong; raises CorruptState if it is not in the logs."""
    manifest = read_manifest(folder, checked)
    logs = [path for path in all_logs(folder) if int(path.stem) >= manifest.log_number]
    if manifest.log_number and (not logs or int(logs[0].stem) != manifest.log_number):
        raise CorruptState(f"{folder / f'{manifest.log_number:06}.log'} is missing, and all writes in it")
    return break_in(logs, manifest.last_sequence + 1, checked)


def break_in(logs: list[Path], expected: int | None, checked: bool) -> Break | None:
    """The first place where something is wrong in logs that begin with the `expected` write, or an earlier one."""
    is_first = True
    last: Stamp | None = None
    for place, path in enumerate(logs):
        data = path.read_bytes()
        for found in read_records(data, checked):
            batch = None if isinstance(found, Fault) else _batch(found.content)
            if batch is not None and expected is None:
                expected = batch.sequence
            if batch is None or expected is None or batch.sequence > expected or (batch.sequence < expected and not is_first):
                what = str(found) if isinstance(found, Fault) else f"a gap before byte {found.offset:,}"
                return Break(path, found.offset, what, last, _whole_after(data, found, logs[place + 1 :]))
            is_first = False
            last = batch.stamp or last
            expected = batch.sequence + batch.count
    return None


def _whole_after(data: bytes, at: Fault | Record, later: list[Path]) -> tuple[Stamp | None] | None:
    """The first stamp of what is whole after a break; of a gap that is what comes first."""
    found = [] if isinstance(at, Fault) else [at]
    found += records_after(data, at.offset)
    for path in later:
        found += [record for record in read_records(path.read_bytes(), True) if isinstance(record, Record)]
    stamps = [batch.stamp for record in found if (batch := _batch(record.content)) is not None]
    if not stamps:
        return None
    return (next((stamp for stamp in stamps if stamp is not None), None),)


def all_logs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.log") if path.stem.isdigit())


def _batch(content: bytes) -> LogBatch | None:
    if len(content) < _BATCH.size:
        return None
    sequence, count = _BATCH.unpack_from(content)
    end = len(content) - STAMP.size
    if not content.endswith(_STAMPED, 0, end):
        return LogBatch(sequence, count, None)
    epoch, number = STAMP.unpack_from(content, end)
    return LogBatch(sequence, count, (epoch, number))


def table_path(folder: Path, number: int) -> Path:
    """Old databases have tables with another suffix."""
    old = folder / f"{number:06}.sst"
    return old if old.exists() else folder / f"{number:06}.ldb"


def read_manifest(folder: Path, checked: bool) -> Manifest:
    """What CURRENT's MANIFEST says; raises CorruptState if one of them, or a table, is missing or damaged."""
    try:
        name = (folder / "CURRENT").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        raise CorruptState(f"{folder / 'CURRENT'} is missing") from None
    path = folder / name.removesuffix("\n")
    if not name.endswith("\n") or not _DATABASE_FILE.fullmatch(path.name) or not path.is_file():
        raise CorruptState(f"{folder / 'CURRENT'} is damaged: it names {name!r}")
    manifest = Manifest()
    for found in read_records(path.read_bytes(), checked):
        if isinstance(found, Record):
            _apply_edit(manifest, found.content, path)
        elif not found.is_tail:  # which was not in force yet, or files are missing that it would have replaced
            raise CorruptState(f"{path}: {found}")
    for number, (_, size) in manifest.tables.items():
        table = table_path(folder, number)
        if not table.exists():
            raise CorruptState(f"{table} is missing, and all rows in it")
        if table.stat().st_size != size:
            raise CorruptState(f"{table} has {table.stat().st_size:,} bytes instead of {size:,}")
    return manifest


def _apply_edit(manifest: Manifest, edit: bytes, path: Path) -> None:
    """One change of the set of files; fields are a tag and numbers or byte strings."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = edit[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def skip_bytes() -> None:
        nonlocal at
        length = number()
        at += length

    try:
        while at < len(edit):
            match number():
                case 1:
                    skip_bytes()
                case 2:
                    manifest.log_number = number()
                case 3 | 9:
                    number()
                case 4:
                    manifest.last_sequence = number()
                case 5:
                    number()
                    skip_bytes()
                case 6:
                    number()
                    manifest.tables.pop(number(), None)
                case 7:
                    level = number()
                    table = number()
                    manifest.tables[table] = level, number()
                    skip_bytes()
                    skip_bytes()
                case tag:
                    raise CorruptState(f"{path}: an unknown field {tag}")
    except IndexError:
        raise CorruptState(f"{path}: a change that ends too early") from None
