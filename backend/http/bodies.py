"""The bodies of requests and answers. The OpenAPI document is made from these classes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

KEYS_MAX = 10_000
STATEMENTS_MAX = 1_000
ROWS_MAX = 100_000

Value = Any
Key = Any
Sql = Annotated[str, Meta(min_length=1, max_length=1 << 20)]
Parameters = list[Value]


class LookupRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Keys of a view: of a SELECT with a `?` for each key column, or of a named view or table."""

    keys: Annotated[list[Key], Meta(max_length=KEYS_MAX, description="a value each, or a list for several columns")]
    query: Annotated[str, Meta(description="SELECT … WHERE column = ?")] = ""
    view: Annotated[str, Meta(description="in place of `query`: the name of a view or table")] = ""
    by: Annotated[list[str] | None, Meta(description="columns of the named view; the primary key of a table")] = None
    block: Annotated[bool, Meta(description="false: answer null for keys that are not at hand")] = True


class LookupAnswer(msgspec.Struct):
    """The rows of each key, in the order of the keys; all as of one moment if the request blocks."""

    columns: list[str]
    rows: list[list[list[Value]] | None]


class RangeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a key's rows, by the columns that the view is ordered by: those of its ORDER BY."""

    key: Annotated[Key, Meta(description="a value, or a list for several or no columns")] = []
    query: Annotated[str, Meta(description="SELECT … WHERE column = ? ORDER BY …")] = ""
    view: Annotated[str, Meta(description="in place of `query`: the name of a view or table")] = ""
    by: Annotated[list[str] | None, Meta(description="columns of the named view; the primary key of a table")] = None
    low: Annotated[Key, Meta(description="null for no bound")] = None
    high: Annotated[Key, Meta(description="null for no bound")] = None
    limit: Annotated[int, Meta(ge=0, le=ROWS_MAX)] | None = None
    descending: bool | None = None
    inclusive: Literal["both", "left", "right", "neither"] = "left"


class ListedRows(msgspec.Struct):
    """Rows in their order."""

    columns: list[str]
    rows: list[list[Value]]


class ChangedRows(msgspec.Struct):
    """What one epoch has changed: rows, and for each how many times it came, or went if that is negative."""

    columns: list[str]
    epoch: int
    rows: list[list[Value]]
    weights: list[int]


class KeepChanges(msgspec.Struct, forbid_unknown_fields=True):
    """How long, and how many bytes on each shard, changes are to be kept."""

    seconds: Annotated[int, Meta(ge=1)] = 86_400
    bytes: Annotated[int, Meta(ge=1)] = 64 << 20


class Position(msgspec.Struct):
    """The epoch after which changes can be read."""

    epoch: int


class NewRows(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to insert in one transaction, all with values for the same columns."""

    rows: Annotated[list[dict[str, Value]], Meta(min_length=1, max_length=ROWS_MAX)]


class Changes(msgspec.Struct, forbid_unknown_fields=True):
    """New values of some columns of a row."""

    values: Annotated[dict[str, Value], Meta(min_length=1)]


class Row(msgspec.Struct):
    """A row of a table by the names of its columns."""

    row: dict[str, Value]


class StatementRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A SELECT, INSERT, REPLACE, UPDATE or DELETE, with a value for each `?`."""

    sql: Sql
    parameters: Parameters = []


class TransactionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Statements that all take effect, or none."""

    statements: Annotated[list[StatementRequest], Meta(min_length=1, max_length=STATEMENTS_MAX)]


class StatementAnswer(msgspec.Struct):
    """What a statement gave: rows, or how many it changed."""

    columns: list[str] = []
    rows: list[list[Value]] = []
    affected: int = 0
    last_insert_id: int = 0


class TransactionAnswer(msgspec.Struct):
    """One for each statement."""

    results: list[StatementAnswer]


class ProgramRequest(msgspec.Struct, forbid_unknown_fields=True):
    """CREATE, ALTER, DROP, RENAME and TRUNCATE statements, separated by `;`: all take effect, or none."""

    sql: Sql


class NamedView(msgspec.Struct):
    """A view that CREATE VIEW has made."""

    name: str
    definition: str


class Views(msgspec.Struct):
    """The views of a database that the account may see."""

    views: list[NamedView]


class MaintainedView(msgspec.Struct):
    """A query that a worker keeps the answers of, as in the table millrace.views."""

    shard: int
    name: str
    definition: str
    state: str
    key_count: int
    row_count: int
    bytes: int
    hits: int
    misses: int
    evictions: int
    named_views: list[str]
    since: datetime


class MaintainedViews(msgspec.Struct):
    """All that is maintained."""

    views: list[MaintainedView]


class Error(msgspec.Struct):
    """MySQL's code, SQLSTATE and message."""

    code: int
    sqlstate: str
    message: str


class Failure(msgspec.Struct):
    """Every answer that is no success."""

    error: Error


class DoneAnswer(msgspec.Struct):
    """It is done."""
