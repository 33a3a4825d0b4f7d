"""What is said about scans by column, and about epochs that are kept for a job of many of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeepEpoch:
    """Keep `epoch`, or that of now (0), readable for everybody until so many seconds after it was last read.

    Answered by ReadableEpoch. `name` is what `ForgetEpoch` names; to keep it again under the same name prolongs it.
    """

    name: bytes
    epoch: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ForgetEpoch:
    name: bytes


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """Some record batches of the rows of `node`, a filter and columns over one `table`, with start ≤ key < stop as of `epoch`.

    `scan` continues one that was begun before (0: begin).
    """

    scan: int
    node: bytes = b""
    table: bytes = b""
    start: bytes = b""
    stop: bytes = b""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """Record batches as Arrow's IPC messages; `scan` is what to ask on with, 0 at the end."""

    scan: int
    batches: list[bytes]


@dataclass(frozen=True, slots=True)
class EndColumns:
    scan: int


@dataclass(frozen=True, slots=True)
class SplitRange:
    """Keys that cut a range into so many parts of about the same size; answered by SplitKeys."""

    start: bytes
    stop: bytes
    parts: int


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """Ascending, within the range; fewer than asked for where little is stored."""

    keys: list[bytes]
