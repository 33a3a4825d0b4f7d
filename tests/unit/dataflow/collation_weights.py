"""Writes dataflow/values/collation/weights.bin from MariaDB's WEIGHT_STRING of every code point.

Run it with `python -m tests.unit.dataflow.collation_weights`. The file is a run of tables; each is its
name, then three zlib-compressed arrays: the code points that have weights other than the
implicit ones, how many weights each has at each level, and the weights.
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from array import array
from pathlib import Path
from typing import Any

import dataflow.values.collation
from tests.mariadb import MariaDB

OUTPUT = Path(dataflow.values.collation.__file__).parent / "weights.bin"
SOURCES = {
    "general": ("utf8mb4_general_ci",),
    "unicode": ("utf8mb4_unicode_ci",),
    "unicode_520": ("utf8mb4_unicode_520_ci",),
    "uca_1400": ("utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_ci", "utf8mb4_uca1400_as_cs"),
}


def implicit(name: str, point: int) -> bytes:
    """The weights of a code point that the table does not list."""
    if name == "general":
        return struct.pack(">H", point if point < 0x10000 else 0xFFFD)
    if name == "unicode" and point > 0xFFFF:
        return b"\xff\xfd"
    if 0x3400 <= point <= 0x4DB5 or 0x20000 <= point <= 0x2A6D6:
        base = 0xFB80
    elif 0x4E00 <= point <= 0x9FA5:
        base = 0xFB40
    else:
        base = 0xFBC0
    return struct.pack(">HH", base + (point >> 15), point & 0x7FFF | 0x8000)


def levels(cursor: Any, collation: str) -> dict[int, bytes]:
    cursor.execute(f"SELECT p, WEIGHT_STRING(c COLLATE {collation}) FROM points")
    return {point: bytes(weights) for point, weights in cursor}


def table(cursor: Any, name: str) -> bytes:
    found = [levels(cursor, collation) for collation in SOURCES[name]]
    points, counts, weights = array("I"), array("B"), array("H")
    for point, primary in found[0].items():
        parts = [primary]
        for lower, higher in zip(found[1:], found):
            assert lower[point].startswith(higher[point])
            parts.append(lower[point][len(higher[point]) :])
        tail = parts[1:] in ([], [b"\0\x20", b"\0\x02"])
        if primary == implicit(name, point) and tail:
            continue
        points.append(point)
        for part in parts:
            counts.append(len(part) // 2)
            weights.extend(struct.unpack(f">{len(part) // 2}H", part))
    sections = [zlib.compress(section.tobytes(), 9) for section in (points, counts, weights)]
    return struct.pack("<16sB3I", name.encode(), len(found), *map(len, sections)) + b"".join(sections)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, MariaDB(Path(folder)) as server, server.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE w")
        cursor.execute("USE w")
        cursor.execute("CREATE TABLE points (p INT PRIMARY KEY, c VARCHAR(1) CHARACTER SET utf8mb4) ENGINE=MyISAM")
        every = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
        for start in range(0, len(every), 20000):
            cursor.executemany("INSERT INTO points VALUES (%s, %s)", [(p, chr(p)) for p in every[start : start + 20000]])
        OUTPUT.write_bytes(b"".join(table(cursor, name) for name in SOURCES))
        print(f"{OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
