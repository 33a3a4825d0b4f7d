"""Messages about epochs between shards, their coordinator and their clients.

Messages are facts or commands as frozen values; `dataflow.commit.epochs` and `dataflow.commit.coordinator`
say when each is sent. A transaction is named by its client and that client's own count.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import ClassVar

ABSENT = -1
"""Expect that the key is not there."""
ANY = -2
"""Expect nothing."""
PRESENT = -4
"""Expect that the key is there, whatever its version."""
NEW = -5
"""Expect nothing, as it is known that the key was never there: a number in it was handed out for it alone."""


def is_met(expected: int, version: int) -> bool:
    """Whether a key of that version, or ABSENT, is what was expected."""
    return expected in (version, ANY, NEW) or (expected == PRESENT and version != ABSENT)


TransactionId = tuple[bytes, int]
"""(client, sequence number within the client)"""
Stored = tuple[int, bytes]
"""(version = the epoch that wrote it, value)"""
Write = tuple[bytes, int, bytes | None]
"""(key, expected version, new value, or None to delete)"""
Check = tuple[bytes, int]
"""(key, expected version): must hold at the commit, nothing is written"""
Unchanged = tuple[bytes, bytes, int]
"""(start, stop, epoch): no row with start ≤ key < stop has changed since that epoch. All are rows of one table."""


@dataclass(frozen=True, slots=True)
class Puts:
    """Many keys, all different, and their new values, with one expectation: ABSENT, ANY or NEW.

    The same as so many writes, at a fraction of the cost. All keys are rows of one table, or
    entries of one index of it.
    """

    keys: list[bytes]
    values: list[bytes]
    expected: int
    start: bytes = b""
    """What each value begins with, and which is left out of it."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.keys, map(self.start.__add__, self.values) if self.start else self.values)


# --- clients to shards ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stage:
    """One shard's part of a transaction, to be committed in some epoch soon.

    `participants` are all shards that got a part. `settled` says that the client knows the
    outcome of all its transactions below that number, so their records can go. `owner` is who
    holds the locks of what is written, if anybody does.
    """

    transaction: TransactionId
    settled: int
    participants: tuple[int, ...]
    writes: list[Write]
    checks: list[Check]
    tables: list[tuple[int, int]]
    owner: TransactionId | None = None
    puts: tuple[Puts, ...] = ()
    unchanged: tuple[Unchanged, ...] = ()
    count: ClassVar[int] = 1
    parts: int = 0
    """How many `StagePart` have come before, if the transaction is large; there is nothing else in it then but `tables`."""

    def write_into(self, writes: dict[bytes, bytes | None], new: list[Puts] | None = None) -> None:
        """Every key that is written gets its new value; what is NEW goes to `new` as it is, if that is given."""
        for key, _, value in self.writes:
            writes[key] = value
        for puts in self.puts:
            if new is not None and puts.expected == NEW:
                new.append(puts)
            else:
                writes.update(puts.items())

    def expecting(self) -> Iterator[bytes]:
        """Every key that something is expected of."""
        for part in (self.writes, self.checks):
            yield from [each[0] for each in part if each[1] != ANY]
        for puts in self.puts:
            if puts.expected == ABSENT:
                yield from puts.keys

    def expects_of(self, written: Set[bytes]) -> bool:
        """Whether it expects something of one of these keys."""
        return not written.isdisjoint(self.expecting()) or any(
            start <= key < stop for start, stop, _ in self.unchanged for key in written
        )

    def absent(self) -> Iterator[bytes]:
        """Every key that is written and, if the transaction commits, was not there before; but for those that are NEW."""
        yield from [key for key, expected, _ in self.writes if expected == ABSENT]
        for puts in self.puts:
            if puts.expected == ABSENT:
                yield from puts.keys


@dataclass(frozen=True, slots=True)
class StagePart:
    """One of the parts of a large transaction on this shard, numbered from 0; a `Stage` follows the last.

    What it expects must hold when it comes, and still when the transaction commits.
    """

    transaction: TransactionId
    number: int
    writes: list[Write]
    checks: list[Check]
    owner: TransactionId | None = None
    puts: tuple[Puts, ...] = ()

    def pairs(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Every key that is written, and its new value."""
        for key, _, value in self.writes:
            yield key, value
        for puts in self.puts:
            yield from puts.items()

    def expectations(self) -> Iterator[Check]:
        yield from self.checks
        yield from [(key, expected) for key, expected, _ in self.writes]
        for puts in self.puts:
            yield from [(key, puts.expected) for key in puts.keys]


@dataclass(frozen=True, slots=True)
class Inquire:
    """A client that lost sight of its transaction asks what became of it.

    If it is not decided yet it is withdrawn, so the answer is final either way.
    """

    transaction: TransactionId


# --- what became of a transaction, or of one shard's part of it -----------------------------


@dataclass(frozen=True, slots=True)
class Committed:
    """`results` are those of statements that the shard has run itself, see `dataflow.commit.statement_stage`."""

    epoch: int
    results: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionConflict:
    """`key` holds `found`, which is not what the transaction expected."""

    key: bytes
    found: Stored | None


@dataclass(frozen=True, slots=True)
class StaleSchema:
    """The table has another version than the transaction was made for."""

    table_id: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """It did not commit and never will: another shard refused, or the client gave it up."""


Outcome = Committed | VersionConflict | StaleSchema | Withdrawn


# --- shards to the coordinator --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardJoined:
    """Shard is up (again). `prepared` is the epoch it prepared and knows no decision of."""

    shard: int
    prepared: int | None


@dataclass(frozen=True, slots=True)
class EpochWanted:
    """Something waits: with `own`, transactions of this shard alone.

    `spanning` names transactions of several shards with those shards; each can go into an
    epoch once all of them have named it.
    """

    shard: int
    own: bool
    spanning: tuple[tuple[TransactionId, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionWithdrawn:
    """A spanning transaction that the shard had named does not wait here any more."""

    shard: int
    transaction: TransactionId


@dataclass(frozen=True, slots=True)
class EpochPrepared:
    """The shard can commit `epoch` with or without each transaction in `accepted`.

    `logged` tells whether it wrote anything down, that is, whether it will ask about the
    epoch after a crash; `deferred` ones overlap another and should be named again later.
    """

    shard: int
    epoch: int
    logged: bool
    accepted: tuple[TransactionId, ...]
    deferred: tuple[TransactionId, ...]
    due: bool = False
    """Whether views on this shard change with the epoch, or reads of them wait for it."""


@dataclass(frozen=True, slots=True)
class EpochDecided:
    """Shard 0 has passed the commit point and goes on to the views, for which it needs the others."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochClosed:
    """The epoch is stored on this shard, and its views, if they are part of it, are up to date."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ViewsFailed:
    """The views of this generation cannot be kept any more: something could not be computed.

    `suspects` are those that may be to blame, if that is known; with `is_certain`, those that are.
    """

    shard: int
    generation: int
    suspects: tuple[bytes, ...]
    reason: str
    is_certain: bool = False


# --- the coordinator to shards --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardWelcomed:
    """Answer to ShardJoined: what was committed of its prepared epoch, None if nothing was.

    A shard that had one closes it and then joins again; one that had none is in, without views,
    in the generation that the others are in.
    """

    committed: tuple[TransactionId, ...] | None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class OpenEpoch:
    """Validate what is staged, the transactions in `spanning` last and in this order."""

    epoch: int
    spanning: tuple[TransactionId, ...]


@dataclass(frozen=True, slots=True)
class CloseEpoch:
    """The decision. `committed` and `refused` are spanning transactions.

    `decision_needed` is set for the coordinator's own shard when others wrote the epoch down
    and may ask about it. `generation`, if not 0, says that the views of that generation are
    part of the epoch: they are brought up to it, then make `transitions`, before its writers
    are answered.
    """

    epoch: int
    commit: bool
    committed: tuple[TransactionId, ...] = ()
    refused: tuple[TransactionId, ...] = ()
    decision_needed: bool = False
    generation: int = 0
    transitions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochLanded:
    """The views of all shards show the epoch: its writers may be answered."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ResetViews:
    """A shard was lost, or views failed: all shards forget their views, which begin anew as `generation`."""

    generation: int


@dataclass(frozen=True, slots=True)
class ForgetDecisions:
    """No shard can ask about these epochs any more."""

    epochs: tuple[int, ...]


ToCoordinator = (
    ShardJoined | EpochWanted | TransactionWithdrawn | EpochPrepared | EpochDecided | EpochClosed | ViewsFailed
)
ToShard = ShardWelcomed | OpenEpoch | CloseEpoch | EpochLanded | ResetViews | ForgetDecisions
