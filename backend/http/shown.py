"""The JSON twins of the pages, as bodies of answers. See `backend.http.bodies` for the others."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from backend.http.bodies import Sql


class ShownProcess(msgspec.Struct):
    """A process of the cluster on this machine; `process` is null while it does not run."""

    name: str
    process: int | None
    restarts: int


class ShownShard(msgspec.Struct):
    """A worker; `error` where it does not answer. Of memory, `view_bytes` may take up to `limit_bytes`."""

    shard: int
    error: str = ""
    process: int | None = None
    epoch: int = 0
    transactions: int = 0
    reads: int = 0
    views: int = 0
    view_bytes: int = 0
    limit_bytes: int = 0
    stored_bytes: int = 0
    resident_bytes: int = 0
    longest_hold_ms: float = 0.0


class Moments(msgspec.Struct):
    """Figures over time, one in each list for each of `time` (Unix time); null where nothing was answered.

    `hits` a second were answered from shared memory, `asked` by a worker's view, `evaluated` from the tables; times are in milliseconds.
    """

    time: list[float]
    hits: list[float]
    asked: list[float]
    evaluated: list[float]
    writes: list[float]
    other: list[float]
    p50_ms: list[float | None]
    p95_ms: list[float | None]
    p99_ms: list[float | None]
    view_bytes: list[int]


class ShownKind(msgspec.Struct):
    """Statements by their first word, since the processes began."""

    kind: str
    count: int
    hits: int
    asked: int
    evaluated: int
    errors: int
    mean_ms: float | None
    p95_ms: float | None


class Overview(msgspec.Struct):
    """How the cluster is, and how it has been for some minutes."""

    version: str
    ready: bool
    problems: list[str]
    leader: str
    sessions: int
    processes: list[ShownProcess]
    shards: list[ShownShard]
    kinds: list[ShownKind]
    moments: Moments


class ShownNode(msgspec.Struct):
    """A node of the dataflow, all shards together. `table` is the name of a base table's; `inputs` are nodes.

    `busy` is the part of a processor that it takes.
    """

    node: str
    operation: str
    table: str
    inputs: list[str]
    views: int
    rows: int
    rows_per_s: float
    busy: float
    keys: int
    bytes: int
    state: str
    indexes: list[str]


class ShownView(msgspec.Struct):
    """A maintained view, all shards together. `shared_hits` were answered from shared memory, `hits` by the workers.

    `fill_seconds` and `fill_bins` are the histogram of its upqueries; `fill_p95_ms` is null before the first.
    """

    name: str
    node: str
    definition: str
    tables: list[str]
    key_columns: list[str]
    state: str
    reason: str
    keys: int
    rows: int
    bytes: int
    hits: int
    shared_hits: int
    misses: int
    evictions: int
    named_views: list[str]
    since: datetime
    queries: list[str]
    fill_seconds: float = 0.0
    fill_bins: list[int] = []
    fill_p95_ms: float | None = None


class ShownGraph(msgspec.Struct):
    """Tables, nodes and views; `age_s` is how old this is, `took_s` how long the workers took for it."""

    age_s: float
    took_s: float
    nodes: list[ShownNode]
    views: list[ShownView]


class ShownQuery(msgspec.Struct):
    """A statement that clients have sent, with `?` for its values. `why` a SELECT is evaluated is empty where views answer it.

    `last_id` is the id, in logs and traces, of the last execution that shared memory did not answer: connection and number of the
    command, `http.N`, or `client.HOST.PROCESS.N`.
    """

    database: str
    text: str
    kind: str
    count: int
    hits: int
    asked: int
    evaluated: int
    answered: str
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    longest_ms: float
    last: datetime
    views: list[str]
    why: str
    advice: str
    last_id: str


class Queries(msgspec.Struct):
    """The statements that adapters, the HTTP process and clients remember, those that took most time first."""

    queries: list[ShownQuery]


class Filling(msgspec.Struct):
    """A view that is being filled, or `keys` keys of it: so many `rows` are read, and `behind` have changed meanwhile."""

    shard: int
    view: str
    tables: list[str]
    keys: int
    rows: int
    round: int
    behind: int


class Transition(msgspec.Struct):
    """What has become of a view, or of the definitions."""

    time: datetime
    what: str
    view: str
    tables: list[str]
    definition: str


class Transitions(msgspec.Struct):
    """What is being filled now, and what has changed before, the latest first."""

    filling: list[Filling]
    past: list[Transition]


class ShownSlow(msgspec.Struct):
    """A statement that took 100 ms or longer, with its `id` in logs and traces. Over HTTP and of the client library `connection` is 0."""

    time: datetime
    seconds: float
    user: str
    host: str
    database: str
    connection: int
    text: str
    id: str


class SlowQueries(msgspec.Struct):
    """The latest slow statements of each process, the latest first."""

    slow: list[ShownSlow]


class ShownSession(msgspec.Struct):
    """A client's connection, as in SHOW PROCESSLIST."""

    id: int
    user: str
    host: str
    database: str | None
    command: str
    seconds: float
    state: str | None
    statement: str | None


class Sessions(msgspec.Struct):
    """The connections that the account may see."""

    sessions: list[ShownSession]


class Databases(msgspec.Struct):
    """The databases that the account may see, with their tables and views."""

    databases: dict[str, list[str]]


class ExplainedPlan(msgspec.Struct):
    """A step of a plan, and those that it gets its rows from."""

    text: str
    inputs: list[ExplainedPlan] = []


class Explain(msgspec.Struct, forbid_unknown_fields=True):
    """A statement with its values."""

    sql: Sql
    parameters: list[Any] = []


class ShownExplanation(msgspec.Struct):
    """How it is answered: from `view`, if it is null then evaluated, and `why`; `kept` are the view's keys, null while it is not there."""

    plan: ExplainedPlan
    view: str | None
    kept: int | None
    why: str
    advice: str


SessionNumber = Annotated[int, Meta(ge=0)]
