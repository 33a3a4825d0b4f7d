"""Repair of a damaged store: it keeps what is whole. Only a user starts it, by `millrace repair`.

- A log is cut off where the damage begins, though later writes may be whole: what is left is the store as it was
  at one moment, in which rows, index entries and counters belong together.
- Of a table file that is damaged the blocks that are whole are kept, by LevelDB's own repair. What was in the others is
  gone, and what that had replaced or deleted may be back; CHECK TABLE finds entries and rows that do not belong together.
- Epochs, and the numbers of rows without a primary key, are handed out from far beyond all that can have been used.

What is taken away stays in `lost/`. LevelDB's repair does not verify the checksums of logs, so they are cut before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import plyvel

from dataflow.errors import CorruptState
from persistence.counters import EPOCH_COUNTER
from persistence.files.acknowledged import NAME, AcknowledgementFile, last_acknowledgement
from persistence.files.database import BLOOM_BITS_PER_KEY, MARK, open_files, shown
from persistence.files.free_space import LOG_BYTES_MAX
from persistence.files.inspection import LOST, all_logs, break_in, cut, find_break, is_new
from persistence.layout import row_id_counter
from persistence.shard_store import ShardStore
from persistence.sweeping import stored_tables

EPOCHS_AHEAD = 1_000_000
ROW_IDS_AHEAD = 1 << 40


def repair(folder: Path) -> Iterator[str]:
    """Make the store one that can be opened; says what was wrong and what is lost, nothing if nothing is.

    Nobody else may use the store meanwhile.
    """
    if is_new(folder) or not (damage := _damage(folder)):
        return
    yield damage
    (folder / MARK).unlink(missing_ok=True)
    is_listed = True
    try:
        broken = find_break(folder, checked=True)
    except CorruptState:
        is_listed = False
        broken = break_in(all_logs(folder), None, checked=True)
    if broken is not None:
        cut(broken)
        yield f"{broken.path} is cut off at byte {broken.offset:,}: what was written from there on is lost"
    before = set((folder / LOST).glob("*.ldb"))
    if not is_listed or _unreadable(folder):
        plyvel.repair_db(
            str(folder),
            paranoid_checks=True,
            write_buffer_size=LOG_BYTES_MAX,
            bloom_filter_bits=BLOOM_BITS_PER_KEY,
            compression=None,
        )
        yield f"{folder}: the list of its files is made anew"
    for path in sorted(set((folder / LOST).glob("*.ldb")) - before):
        yield f"{folder / path.name}: what was in damaged blocks is lost, or as it was before; CHECK TABLE tells more"
    yield _renewed(folder)


def _damage(folder: Path) -> str:
    """Why the store is not served; empty if it is whole."""
    try:
        ShardStore(folder).abort()
    except CorruptState as error:
        return error.arguments[0]
    unreadable = _unreadable(folder)
    return f"{folder}: {unreadable}" if unreadable else ""


def _unreadable(folder: Path) -> str:
    """Why not everything can be read; empty if it can."""
    try:
        database = open_files(folder)
    except (plyvel.CorruptionError, CorruptState) as error:
        return shown(error)
    try:
        for _ in database.iterator(verify_checksums=True, fill_cache=False, include_value=False):
            pass
    except plyvel.CorruptionError as error:
        return shown(error)
    finally:
        database.close()
    return ""


def _renewed(folder: Path) -> str:
    """What was acknowledged does not count any more, but is not handed out again either."""
    try:
        known = last_acknowledgement(folder)
    except CorruptState:
        known = None
    (folder / NAME).unlink(missing_ok=True)
    AcknowledgementFile(folder, True, 0, 0).close(is_clean=True)
    store = ShardStore(folder)
    store.allocate(EPOCH_COUNTER, 0, max(store.epoch, known.epoch if known else 0) + EPOCHS_AHEAD)
    for table_id in stored_tables(store):
        counter = row_id_counter(table_id)
        store.allocate(counter, 0, store.counter_next(counter) + ROW_IDS_AHEAD)
    store.close()
    until = f", those up to epoch {known.epoch} are lost" if known and known.epoch > store.epoch else ""
    return f"{folder} is as of epoch {store.epoch}{until}"
