"""Parts of a view in the files of several workers: read as if they were one, as of one epoch or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from backend.shared_memory.columns import ColumnReader
from backend.shared_memory.epoch_words import EpochWords, open_epoch_words
from backend.shared_memory.parts import PartsColumns, PartsReader, SeenEpoch, settled
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames
from backend.shared_memory.shared_key import KeyNaming
from backend.shared_memory.writer import SharedViewWriter
from dataflow.sharding import shard_of, shards_of
from tests.unit.backend.shared_view_processes import DEPLOYMENT, TYPES, decode, put, writer

SHARDS = 3
KEYS = [*range(-20, 60), -(1 << 62), (1 << 62) + 5]


class Workers:
    """Each with a file of its own for its keys, and its epoch words."""

    def __init__(self, stack: ExitStack) -> None:
        self.seen = SeenEpoch()
        self.files: list[SharedViewWriter] = [stack.enter_context(writer()) for _ in range(SHARDS)]
        names = [SegmentNames(DEPLOYMENT, 10 + shard) for shard in range(SHARDS)]
        self.words = [EpochWords(each) for each in names]
        self.reader = PartsReader(SHARDS, KeyNaming(TYPES, (0,)), self.seen)
        for words, each in zip(self.words, names):
            stack.callback(each.close)
            stack.callback(words.close)
        self.show(1)
        for shard, (file, words) in enumerate(zip(self.files, self.words)):
            opened, mapped = SharedViewReader.open(file.file_name), open_epoch_words(words.file_name)
            assert opened is not None and mapped is not None
            self.reader.add(shard, (opened, mapped))

    def show(self, version: int, shards: tuple[int, ...] = tuple(range(SHARDS))) -> None:
        """All keys of these shards have this version in the epoch of the same number."""
        for shard in shards:
            self.words[shard].begin(version)
            for key in KEYS:
                if shard_of(key, SHARDS) == shard:
                    put(self.files[shard], key, version)
            self.files[shard].publish()
            self.words[shard].end(version)


@contextmanager
def workers() -> Iterator[Workers]:
    with ExitStack() as stack:
        yield Workers(stack)


def test_the_shard_of_many_numbers_is_that_of_each() -> None:
    keys = np.array([*KEYS, -(1 << 63), (1 << 63) - 1], np.int64)
    for count in (1, 2, 3, 7, 100):
        assert shards_of(keys, count).tolist() == [shard_of(key, count) for key in keys.tolist()]


def test_keys_and_columns_come_in_the_order_they_were_asked_for() -> None:
    with workers() as some:
        keys = KEYS[::-1] + KEYS[:5]
        found = some.reader.get_many(keys)
        assert found is not None and [decode(rows)[0][0] for rows in found if rows is not None] == keys
        wanted = np.array([*keys[:40], 1_000_000, *keys[40:]], np.int64)
        columns = PartsColumns(some.reader, TYPES).read(wanted, (0, 2))
        assert columns is not None and columns.known.tolist() == [key != 1_000_000 for key in wanted.tolist()]
        rows = [decode(rows)[0] for rows in found if rows is not None]
        assert columns.present.tolist() == columns.known.tolist() and columns.nulls is None
        assert columns.cells[0].tolist() == keys and columns.cells[1].to_pylist() == [row[2] for row in rows]


def test_entries_are_those_of_one_file() -> None:
    with workers() as some, writer() as alone:
        for key in KEYS:
            put(alone, key, 1)
        alone.publish()
        reader = SharedViewReader.open(alone.file_name)
        assert reader is not None
        keys = np.array(KEYS[::-1], np.int64)
        one, several = ColumnReader(reader, TYPES).entries(keys, 1 << 20), PartsColumns(some.reader, TYPES).entries(keys, 1 << 20)
        assert one is not None and several is not None and several.is_known
        assert several.width == one.width and several.words[:, : one.width].tolist() == one.words[:, : one.width].tolist()


def test_files_that_show_different_epochs_are_not_read_together_until_they_agree() -> None:
    with workers() as some:
        assert some.reader.get_many(KEYS) is not None and some.seen.epoch == 1
        some.show(2, (0,))
        assert some.reader.get_many(KEYS) is None and some.reader.is_between
        own = [key for key in KEYS if shard_of(key, SHARDS) == 0]
        assert some.reader.get_many(own) is not None and some.seen.epoch == 2
        behind = next(key for key in KEYS if shard_of(key, SHARDS) == 1)
        assert some.reader.get_number(behind) is None, "nobody goes back"

        async def wait() -> list[bytes | None] | None:
            asyncio.get_running_loop().call_soon(some.show, 2, (1, 2))
            assert some.reader.get_many(KEYS) is None
            return await settled(some.reader, lambda: some.reader.get_many(KEYS))

        found = asyncio.run(wait())
        assert found is not None and {decode(rows)[0][1] for rows in found if rows is not None} == {2}


def test_a_part_that_is_not_there_is_no_reason_to_wait() -> None:
    with workers() as some:
        some.show(2, (0,))
        assert some.reader.get_many(KEYS) is None and some.reader.is_between
        some.reader.forget(1)
        assert some.reader.get_many(KEYS) is None and not some.reader.is_between
        assert asyncio.run(settled(some.reader, lambda: some.reader.get_many(KEYS))) is None
