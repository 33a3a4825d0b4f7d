"""Messages about data jobs: queries that Spark evaluates, in the application that holds the workers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobScan:
    """A relation of a job's statement: columns of a table's rows, read part by part from the shards.

    `columns` are names and Spark's types; `parts` are shards and ranges of keys. If it `is_silent`, a value that gives a warning is an error.
    """

    name: str
    node: bytes
    table: bytes
    columns: list[tuple[str, str]]
    parts: list[tuple[int, bytes, bytes]]
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class RunJob:
    """Evaluate a statement of Spark SQL over scans of one epoch, which is kept; answered by JobRows.

    `job` is its name from now on, `purpose` what others are shown of it. Unless it `may_wait`, it fails where there is no room for it now.
    """

    job: bytes
    purpose: str
    sql: str
    scans: list[JobScan]
    epoch: int
    may_wait: bool = True


@dataclass(frozen=True, slots=True)
class ReadJob:
    """The next rows of a job; answered by JobRows."""

    job: bytes


@dataclass(frozen=True, slots=True)
class JobRows:
    """Record batches as Arrow's IPC streams. There may be more unless `ended`."""

    batches: list[bytes]
    ended: bool


@dataclass(frozen=True, slots=True)
class CancelJob:
    job: bytes


@dataclass(frozen=True, slots=True)
class AskJobs:
    """Answered by Jobs."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """`tasks_done` of the `tasks` that are known so far."""

    job: bytes
    purpose: str
    epoch: int
    tasks: int
    tasks_done: int


@dataclass(frozen=True, slots=True)
class Jobs:
    jobs: list[JobStatus]


JobMessage = RunJob | ReadJob | JobRows | CancelJob | AskJobs | Jobs
