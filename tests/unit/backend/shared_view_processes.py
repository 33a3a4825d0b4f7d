"""A view in shared memory for tests: rows that carry a checksum, and readers in other processes."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np

from backend.shared_memory.columns import ColumnReader
from backend.shared_memory.entry import EntryLayout
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames, prefix_of, remove_stale
from backend.shared_memory.writer import SharedViewWriter
from dataflow.values.types import BIGINT, Row, text

TYPES = (BIGINT, BIGINT, text(200), BIGINT)
DEPLOYMENT = "tests of shared views " + os.environ.setdefault("MILLRACE_TEST_RUN", str(os.getpid()))
"""The same in the processes that a test starts, another in tests that run at the same time."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[tuple[int, int, str, int]]).decode


@contextmanager
def writer(exact: bool = True, complete: bool = False) -> Iterator[SharedViewWriter]:
    names = SegmentNames(DEPLOYMENT, 0)
    view = SharedViewWriter(names.new(), EntryLayout(TYPES), exact, complete)
    try:
        yield view
    finally:
        view.close()
        names.close()


def left_behind() -> int:
    """How many files of these tests are there, all of which are removed."""
    return remove_stale(prefix_of(DEPLOYMENT))


def checked_row(key: int, version: int) -> Row:
    filler = str(version) * (version % 23)
    return (key, version, filler, checksum(key, version, filler))


def checksum(key: int, version: int, filler: str) -> int:
    return zlib.crc32(f"{key} {version} {filler}".encode())


def put(view: SharedViewWriter, key: int, version: int) -> bool:
    rows = [checked_row(key, version)]
    return view.put(key, rows, encode(rows))


def is_sound(key: int, row: Row) -> bool:
    found, version, filler, check = row
    assert isinstance(version, int) and isinstance(filler, str)
    return found == key and check == checksum(key, version, filler)


def start_reader(view: SharedViewWriter, key_count: int) -> subprocess.Popen[str]:
    """A process that reads until its input ends, then says: reads, retries, keys missed, errors."""
    command = [sys.executable, "-m", "tests.unit.backend.shared_view_processes", view.file_name, str(key_count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "reading\n"
    return process


def stop_reader(process: subprocess.Popen[str]) -> dict[str, int]:
    output, _ = process.communicate("", timeout=60)
    assert process.returncode == 0
    return msgspec.json.decode(output, type=dict[str, int])


def read_until_told(name: str, key_count: int) -> dict[str, int]:
    """Single keys and batches, each row checked; a key's version must never go back."""
    reader = SharedViewReader.open(name)
    assert reader is not None
    columns = ColumnReader(reader, TYPES)
    random = np.random.default_rng(1)
    newest = [0] * key_count
    told = {"reads": 0, "missed": 0, "wrong": 0, "older": 0}
    print("reading", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0] and not reader.is_gone:
        keys = random.integers(0, key_count, 200)
        rows: list[tuple[int, Row]] = []
        for key in keys.tolist():
            found = reader.get_number(key)
            if found is None:
                told["missed"] += 1
            else:
                rows.append((key, decode(found)[0]))
        batch = columns.read(keys)
        if batch is not None:
            values = zip(*(each.tolist() if hasattr(each, "tolist") else each.to_pylist() for each in batch.cells))
            rows += zip(keys[batch.present].tolist(), values)
        copied = columns.entries(keys, 1 << 20)
        if copied is not None and copied.is_known and len(copied.words) == len(keys):
            data = copied.words.tobytes()
            for key, place, cells in zip(keys.tolist(), copied.places.tolist(), copied.words[:, :4].tolist()):
                begin, end = cells[2] & 0xFFFFFFFF, cells[2] >> 32
                rows.append((key, (*cells[:2], data[place + begin : place + end].decode(), cells[3])))
        for key, row in rows:
            told["reads"] += 1
            told["wrong"] += not is_sound(key, row)
            version = row[1]
            assert isinstance(version, int)
            told["older"] += version < newest[key]
            newest[key] = max(version, newest[key])
    return told | {"retries": reader.retries, "gone": int(reader.is_gone)}


if __name__ == "__main__":
    print(msgspec.json.encode(read_until_told(sys.argv[1], int(sys.argv[2]))).decode())
