"""Messages about scans by column, and about epochs that are kept for a job of many scans."""

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
    """Some record batches of `node`, over the rows of one `table` with start ≤ key < stop as of `epoch`.

    A filter and columns give those; see `backend.scans.column_programs` for the others. `scan` continues one that was begun before
    (0: begin). With `is_silent`, a value that gives a warning makes it give up.
    """

    scan: int
    node: bytes = b""
    table: bytes = b""
    start: bytes = b""
    stop: bytes = b""
    epoch: int = 0
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """Record batches as Arrow's IPC messages; `scan` is what to ask on with, 0 at the end.

    `gave_up` is why there is no exact answer by column; all that came before is to be forgotten then.
    """

    scan: int
    batches: list[bytes]
    gave_up: str = ""


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


@dataclass(frozen=True, slots=True)
class EstimateRows:
    """About how many rows a range of a table has; answered by EstimatedRows."""

    start: bytes
    stop: bytes


@dataclass(frozen=True, slots=True)
class EstimatedRows:
    """Of those that are in files."""

    rows: int


@dataclass(frozen=True, slots=True)
class OpenAudit:
    """Keep a maintained view readable as of `epoch`, which is kept, and is that of now.

    Answered by AuditOpened, or UnknownView. With `sample`, so many of its keys are chosen by chance.
    """

    view: bytes
    sample: int
    epoch: int


@dataclass(frozen=True, slots=True)
class AuditOpened:
    """`columns` are those that the keys are of; it has so many `keys`. If it `is_full`, a key that is not told of has no rows."""

    audit: int
    node: bytes
    columns: tuple[int, ...]
    keys: int
    is_full: bool


@dataclass(frozen=True, slots=True)
class ReadAudit:
    """Some more of the keys that were there; answered by AuditedKeys. One that has been evicted since is left out."""

    audit: int


@dataclass(frozen=True, slots=True)
class AuditedKeys:
    """Each key as msgpack has it, and its rows as those of Found; `audit` is 0 at the end."""

    audit: int
    keys: list[bytes]
    rows: list[bytes]


@dataclass(frozen=True, slots=True)
class EndAudit:
    audit: int


ScanMessage = (
    KeepEpoch | ForgetEpoch | ScanColumns | ScannedColumns | EndColumns | SplitRange | SplitKeys | EstimateRows
    | EstimatedRows | OpenAudit | AuditOpened | ReadAudit | AuditedKeys | EndAudit
)
