"""Messages between sessions of different adapters, through worker 0: user-level locks and questions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LockRequest:
    """Of shard 0: GET_LOCK and its family; answered by LockAnswer.

    `action` is acquire, release, release_all, owner or withdraw. `owner` is a connection of the
    process that asks. `token` numbers its requests, so that it can withdraw one that waits.
    """

    action: str
    owner: int
    name: str = ""
    timeout_s: float = 0.0
    token: int = 0


@dataclass(frozen=True, slots=True)
class LockAnswer:
    value: int | None


@dataclass(frozen=True, slots=True)
class AdapterJoined:
    """To shard 0: this process answers what adapters ask each other."""


@dataclass(frozen=True, slots=True)
class AskAdapters:
    """To shard 0: pass this on to all other adapters; from shard 0: it was passed on."""

    question: bytes


@dataclass(frozen=True, slots=True)
class AdapterAnswers:
    answers: list[bytes]


@dataclass(frozen=True, slots=True)
class StatementsReported:
    """To shard 0: what a client of the library has run since it began, a `backend.processes.statement_counts.StatementReport`."""

    client: bytes
    report: bytes


@dataclass(frozen=True, slots=True)
class AskReported:
    """Of shard 0: the last report of each client; answered by AdapterAnswers."""


SessionMessage = LockRequest | AdapterJoined | AskAdapters | StatementsReported | AskReported
"""What shard 0 is asked and told."""
