"""Everything that processes of one cluster say to each other over TCP.

A message is a frozen value; its place in `Message` is its number on the wire, and msgspec
checks every field when it decodes. The epoch messages are those of `dataflow`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from backend.network.bundles import BundleSent, ShardLinked
from backend.network.feed_messages import FeedMessage
from backend.network.job_messages import JobMessage
from backend.network.lock_messages import (
    BreakWait,
    EndLocks,
    LockedRows,
    LockRows,
    OwnerWaits,
    RowLocked,
)
from backend.network.miss_messages import FoundEach, LookupEach
from backend.network.origin import Origin
from backend.network.program_messages import ProgramMessage
from backend.network.scan_messages import ScanMessage
from backend.network.session_messages import (
    AdapterAnswers,
    AdapterJoined,
    AskAdapters,
    AskReported,
    LockAnswer,
    LockRequest,
    StatementsReported,
)
from backend.network.statement_messages import AddStatement, RunStatements, UnknownStatement
from backend.network.view_messages import (
    EndedViews,
    FillReported,
    HostedViews,
    KeysWanted,
    ViewsKept,
    ViewsUsed,
)
from backend.views.view_range import EncodedRange
from controller.account_changes import AccountStatement
from controller.catalog_nodes import StoredHead
from controller.sql.settings import Settings
from dataflow.commit.epoch_messages import (
    CloseEpoch,
    Committed,
    EpochClosed,
    EpochDecided,
    EpochLanded,
    EpochPrepared,
    EpochWanted,
    ForgetDecisions,
    Inquire,
    OpenEpoch,
    ResetViews,
    ShardJoined,
    ShardWelcomed,
    Stage,
    StagePart,
    StaleSchema,
    Stored,
    TransactionWithdrawn,
    VersionConflict,
    ViewsFailed,
    Withdrawn,
)


@dataclass(frozen=True, slots=True)
class Failed:
    """An error in place of the answer: `kind` and `condition` name those of `dataflow.errors`."""

    kind: str
    condition: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Nothing to say but that it is done."""


@dataclass(frozen=True, slots=True)
class Get:
    """Values as of `epoch`, or of now (0): all that is acknowledged, and nothing that views do not show yet."""

    keys: list[bytes]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Values:
    values: list[Stored | None]


@dataclass(frozen=True, slots=True)
class Scan:
    """A chunk of start ≤ key < stop as of `epoch`, or of now (0).

    `scan` continues one that was begun before (0: begin).
    """

    scan: int
    start: bytes = b""
    stop: bytes = b""
    resolve: bytes | None = None
    reverse: bool = False
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Scanned:
    """`scan` is what to ask on with, 0 at the end."""

    scan: int
    rows: list[tuple[bytes, int, bytes]]


@dataclass(frozen=True, slots=True)
class EndScan:
    scan: int


@dataclass(frozen=True, slots=True)
class Allocate:
    """With `expected`, the counter is lowered to `floor` instead, if that is what it would hand out next."""

    counter: bytes
    count: int
    floor: int
    expected: int = 0


@dataclass(frozen=True, slots=True)
class Allocated:
    first: int


@dataclass(frozen=True, slots=True)
class SetTables:
    """The versions of all tables and named views, and the tables that have just `changed`; answered once they are in force."""

    catalog_version: int
    versions: dict[int, int]
    next_table_id: int
    changed: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Keys of a view that live on the shard asked, as one msgpack list of tuples; `part` if not all of their rows are wanted.

    They are wanted as of `least_epoch` or later.
    """

    view: bytes
    keys: bytes
    part: EncodedRange | None = None
    least_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """For each key its rows as a msgpack list of tuples, all as of `epoch`, which is 0 where there is only one shard.

    `file` is where this machine's processes find them from now on; with several shards, `words` is where they see which
    epoch is shown there.
    """

    rows: list[bytes]
    file: str = ""
    epoch: int = 0
    words: str = ""


@dataclass(frozen=True, slots=True)
class UnknownView:
    """There is no such view here."""


@dataclass(frozen=True, slots=True)
class AskEpoch:
    """Of shard 0: an epoch at which all shards can be read together."""


@dataclass(frozen=True, slots=True)
class ReadableEpoch:
    epoch: int


@dataclass(frozen=True, slots=True)
class HoldEpoch:
    """Keep `epoch`, or that of now (0), readable until it is released; answered by ReadableEpoch."""

    epoch: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseEpoch:
    epoch: int


@dataclass(frozen=True, slots=True)
class AskStatus:
    pass


@dataclass(frozen=True, slots=True)
class ShardStatus:
    shard: int
    process: int
    epoch: int
    transactions: int
    reads: int
    open_scans: int
    stored_bytes: int
    resident_bytes: int
    in_doubt: bool
    catalog_version: int
    views: int
    view_bytes: int
    only_full_views_left: bool
    damage: str = ""
    """What of the shard's files is damaged or missing, in words; such a shard answers no reads or writes."""
    read_only: bool = False
    """The disk is all but full: rows can be read, not added or changed."""
    longest_hold_ms: float = 0.0
    durations: dict[str, tuple[float, list[int]]] = field(default_factory=dict)
    """Histograms of epochs, writes to disk and fills, see `backend.processes.durations`."""
    """The longest time for which the worker has computed without answering anybody, see `loop_holds`."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Close the shard cleanly and end the process."""


@dataclass(frozen=True, slots=True)
class Define:
    """DDL statements, for the controller's leader: all of them happen, or none."""

    statements: list[str]
    database: str | None
    settings: Settings


@dataclass(frozen=True, slots=True)
class ChangeAccounts:
    """A statement about accounts, for the controller's leader; answered by Defined."""

    statement: AccountStatement


@dataclass(frozen=True, slots=True)
class Defined:
    """`warnings` are (level, code, message); `head` is the catalog's after the last change."""

    warnings: list[tuple[str, int, str]]
    head: StoredHead | None


@dataclass(frozen=True, slots=True)
class AskLeading:
    """Of a controller: whether it is there, and leads; answered by Done or NotLeading."""


@dataclass(frozen=True, slots=True)
class NotLeading:
    """The controller asked does not lead (yet, or any more)."""


@dataclass(frozen=True, slots=True)
class AskViews:
    """What is kept in views; answered by HostedViews."""


Message = (
    Failed
    | Acknowledged
    | Get
    | Values
    | Scan
    | Scanned
    | EndScan
    | Allocate
    | Allocated
    | SetTables
    | Lookup
    | Found
    | UnknownView
    | AskEpoch
    | ReadableEpoch
    | HoldEpoch
    | ReleaseEpoch
    | AskStatus
    | ShardStatus
    | Stop
    | Define
    | ChangeAccounts
    | Defined
    | AskLeading
    | NotLeading
    | Stage
    | Inquire
    | Committed
    | VersionConflict
    | StaleSchema
    | Withdrawn
    | ShardJoined
    | EpochWanted
    | TransactionWithdrawn
    | EpochPrepared
    | EpochDecided
    | EpochClosed
    | ViewsFailed
    | EpochLanded
    | ResetViews
    | ShardWelcomed
    | OpenEpoch
    | CloseEpoch
    | ForgetDecisions
    | LockRequest
    | LockAnswer
    | AdapterJoined
    | AskAdapters
    | AdapterAnswers
    | LockRows
    | LockedRows
    | EndLocks
    | RowLocked
    | OwnerWaits
    | BreakWait
    | AskViews
    | HostedViews
    | ViewsUsed
    | FillReported
    | EndedViews
    | KeysWanted
    | ViewsKept
    | BundleSent
    | ShardLinked
    | StagePart
    | LookupEach
    | FoundEach
    | AddStatement
    | RunStatements
    | UnknownStatement
    | ScanMessage
    | Origin
    | FeedMessage
    | JobMessage
    | ProgramMessage
    | StatementsReported
    | AskReported
)

MESSAGES: tuple[type[Message], ...] = get_args(Message)
