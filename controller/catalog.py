"""The catalog: an immutable snapshot of every database, base table, view and account.

Table names are case-sensitive, as in MySQL on Linux; column names are not. A `CatalogChange`
is what a DDL statement asks for; `Catalog.apply` makes the next snapshot of it. Ids are never
used again, which is why `next_table_id` is part of the snapshot and not the largest id + 1.

Databases and tables encode to bytes one by one (each is a znode of its own, and a znode holds
at most 1 MB). Where and when they are stored is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import msgspec

from controller.accounts import INITIAL_ACCOUNTS, Account, AccountName, Grant
from dataflow import schema
from dataflow.errors import Condition, CorruptState, InvalidStatement
from dataflow.expressions import expression
from dataflow.expressions.expression import Expression
from dataflow.plan import node
from dataflow.schema import Table
from dataflow.values.types import DEFAULT_COLLATION, Kind, SqlType


@dataclass(frozen=True, slots=True)
class CatalogDatabase:
    name: str
    collation: str = DEFAULT_COLLATION


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A SELECT under a name. `columns` are names given to its columns, empty if they keep their own.

    Names in it are resolved in `default_database`, and its literals have `collation`. Whoever reads it needs rights
    on its tables only if `invoker`. `check` is LOCAL or CASCADED for WITH CHECK OPTION. `algorithm` is MERGE or TEMPTABLE if
    one was named; a view that is to be a temporary table is not written through.
    """

    database: str
    name: str
    select: str
    columns: tuple[str, ...] = ()
    default_database: str = ""
    collation: str = DEFAULT_COLLATION
    definer: tuple[str, str] = ("root", "localhost")
    invoker: bool = False
    check: str = ""
    algorithm: str = ""

    @property
    def id(self) -> int:
        """What no table has, and no other definition of this view: who uses it knows from this that it is gone."""
        return _view_id(self)


@lru_cache(maxsize=4096)
def _view_id(view: CatalogView) -> int:
    content = msgspec.msgpack.encode(view)
    return -1 - int.from_bytes(blake2b(content, digest_size=7).digest(), "big")


ViewName = tuple[str, str]
"""(database, name)"""


@dataclass(frozen=True, slots=True)
class Note:
    """What SHOW WARNINGS lists after a statement: level is Note or Warning."""

    level: str
    condition: Condition
    message: str


HIDDEN_NAME_PREFIXES = ("#sql-temp-", "#sql-alter-")
"""Names of temporary tables, and of those that are being filled to take the place of others."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The rows of a table are to be stored anew, as `table`, which then takes its place.

    `sql_mode` and `time_zone` are those of the session, for values that change their type. Rows that fulfil `left_out` are not stored
    anew: those of partitions that are dropped or truncated.
    """

    table_id: int
    table: Table
    sql_mode: frozenset[str]
    time_zone: str = "UTC"
    left_out: Expression | None = None


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """The effect of one DDL statement, all or nothing.

    `tables_dropped` holds ids. `builds` are (table id, index id) of indexes to be filled from
    stored rows; until then they are marked `building`. `checks` are (table id, name) of foreign
    keys that stored rows must be found to fulfil. `counters` are the ids of tables whose next AUTO_INCREMENT number
    is to be what they say now, as far as the stored rows allow.
    """

    databases_put: tuple[CatalogDatabase, ...] = ()
    databases_dropped: tuple[str, ...] = ()
    tables_put: tuple[Table, ...] = ()
    tables_dropped: tuple[int, ...] = ()
    builds: tuple[tuple[int, int], ...] = ()
    checks: tuple[tuple[int, str], ...] = ()
    counters: tuple[int, ...] = ()
    copies: tuple[Copy, ...] = ()
    notes: tuple[Note, ...] = ()
    views_put: tuple[CatalogView, ...] = ()
    views_dropped: tuple[ViewName, ...] = ()
    accounts_put: tuple[Account, ...] = ()
    accounts_dropped: tuple[AccountName, ...] = ()

    @property
    def is_empty(self) -> bool:
        tables = self.tables_put or self.tables_dropped or self.copies
        views = self.views_put or self.views_dropped
        accounts = self.accounts_put or self.accounts_dropped
        return not (self.databases_put or self.databases_dropped or tables or views or accounts)


@dataclass(frozen=True, slots=True)
class Catalog:
    databases: Mapping[str, CatalogDatabase] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[int, Table] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[tuple[str, str], int] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0
    next_table_id: int = 1
    views: Mapping[ViewName, CatalogView] = field(default_factory=lambda: MappingProxyType({}))
    accounts: Mapping[AccountName, Account] = field(default_factory=lambda: MappingProxyType({}))
    stored: Catalog | None = None
    """Without a session's temporary tables, where this is with them."""

    @staticmethod
    def of(
        databases: tuple[CatalogDatabase, ...],
        tables: tuple[Table, ...],
        version: int,
        next_table_id: int,
        views: tuple[CatalogView, ...] = (),
        accounts: tuple[Account, ...] = (),
    ) -> Catalog:
        return Catalog(
            MappingProxyType({database.name: database for database in databases}),
            MappingProxyType({table.id: table for table in tables}),
            MappingProxyType({(table.database, table.name): table.id for table in tables}),
            version,
            next_table_id,
            MappingProxyType({(view.database, view.name): view for view in views}),
            MappingProxyType({account.name: account for account in accounts}),
        )

    @property
    def versions(self) -> Mapping[int, int]:
        """Of all tables by id. Named views have ids, too, and are never changed: another definition has another id."""
        return {table.id: table.version for table in self.tables.values()} | {view.id: 0 for view in self.views.values()}

    @property
    def known_accounts(self) -> Mapping[AccountName, Account]:
        """`accounts`, or the one that there is before any statement about them."""
        return self.accounts or INITIAL_ACCOUNTS

    def views_of(self, database: str) -> list[CatalogView]:
        """The views of `database` by name."""
        found = [view for view in self.views.values() if view.database == database]
        return sorted(found, key=lambda view: view.name)

    def database(self, name: str | None) -> CatalogDatabase:
        if not name:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        found = self.databases.get(name)
        if found is None:
            raise InvalidStatement(Condition.UNKNOWN_DATABASE, name)
        return found

    def find_table(self, database: str, name: str) -> Table | None:
        table_id = self.names.get((database, name))
        return None if table_id is None else self.tables[table_id]

    def table(self, database: str | None, name: str) -> Table:
        """The table, or MySQL's error for why there is none."""
        if not database:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        found = self.find_table(database, name)
        if found is None:
            if database not in self.databases:
                raise InvalidStatement(Condition.UNKNOWN_DATABASE, database)
            raise InvalidStatement(Condition.UNKNOWN_TABLE, f"{database}.{name}")
        return found

    def tables_of(self, database: str) -> list[Table]:
        """The tables of `database` by name."""
        found = [table for table in self.tables.values() if table.database == database and not table.name.startswith(HIDDEN_NAME_PREFIXES)]
        return sorted(found, key=lambda table: table.name)

    def references_to(self, database: str, name: str) -> Iterator[tuple[Table, schema.ForeignKey]]:
        """The foreign keys that point at a table, with the table that declares each."""
        for table in self.tables.values():
            for key in table.foreign_keys:
                if (key.parent_database, key.parent_table) == (database, name):
                    yield table, key

    def apply(self, change: CatalogChange) -> Catalog:
        databases = dict(self.databases)
        tables = dict(self.tables)
        for name in change.databases_dropped:
            del databases[name]
        for database in change.databases_put:
            databases[database.name] = database
        for table_id in change.tables_dropped:
            del tables[table_id]
        next_table_id = self.next_table_id
        for table in change.tables_put:
            old = self.tables.get(table.id)
            assert old is None or old.version < table.version, "a changed table has a higher version"
            tables[table.id] = table
            next_table_id = max(next_table_id, table.id + 1)
        views = {name: view for name, view in self.views.items() if name[0] in databases}
        for view_name in change.views_dropped:
            views.pop(view_name, None)
        for view in change.views_put:
            views[view.database, view.name] = view
        accounts = dict(self.accounts)
        for account_name in change.accounts_dropped:
            del accounts[account_name]
        for account in change.accounts_put:
            accounts[account.name] = account
        return Catalog.of(
            tuple(databases.values()),
            tuple(tables.values()),
            self.version + 1,
            next_table_id,
            tuple(views.values()),
            tuple(accounts.values()),
        )


# --- encoding -------------------------------------------------------------------------------
# Dataclasses become {"": tag, field: value …} without the fields that have their default, so a
# field added later reads as its default in what was stored before.

_CLASSES: dict[str, Any] = {
    "database": CatalogDatabase,
    "view": CatalogView,
    "account": Account,
    "grant": Grant,
    "table": schema.Table,
    "column": schema.TableColumn,
    "partition": schema.Partition,
    "partitioning": schema.Partitioning,
    "index": schema.Index,
    "part": schema.KeyPart,
    "foreign_key": schema.ForeignKey,
    "check": schema.Check,
    "type": SqlType,
    "read": expression.Column,
    "literal": expression.Literal,
    "parameter": expression.Parameter,
    "call": expression.Call,
    "base": node.Base,
    "join": node.Join,
    "left_join": node.LeftJoin,
    "semi_join": node.SemiJoin,
    "aggregate": node.Aggregate,
    "aggregate_function": node.AggregateFunction,
    "order": node.Order,
    "top_k": node.TopK,
    "union": node.Union,
}
_TAGS: dict[Any, str] = {found: tag for tag, found in _CLASSES.items()}


_FIELDS = {tag: tuple((each.name, each.default) for each in fields(found)) for tag, found in _CLASSES.items()}


def to_builtins(value: object) -> Any:
    """`value` as None, numbers, str, bytes, lists and dicts: what msgpack can carry."""
    if isinstance(value, tuple):
        return [to_builtins(each) for each in value]
    if isinstance(value, Decimal):
        return {"": "decimal", "value": str(value)}
    if isinstance(value, Kind):
        return {"": "kind", "value": value.value}
    if type(value) in _TAGS:
        tag = _TAGS[type(value)]
        packed: dict[str, Any] = {"": tag}
        for name, default in _FIELDS[tag]:
            each = getattr(value, name)
            if type(each) is not type(default) or each != default:
                packed[name] = to_builtins(each)
        return packed
    assert value is None or isinstance(value, int | float | str | bytes), type(value)
    return value


def from_builtins(packed: Any) -> Any:
    """The inverse of `to_builtins`; raises `CorruptState` for what that cannot have made."""
    if isinstance(packed, list):
        return tuple([from_builtins(each) for each in packed])
    if not isinstance(packed, dict):
        return packed
    try:
        arguments = {name: from_builtins(each) for name, each in packed.items() if name}
        match packed[""]:
            case "decimal":
                return Decimal(arguments["value"])
            case "kind":
                return Kind(arguments["value"])
            case tag:
                return _CLASSES[tag](**arguments)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptState(f"catalog entry: {error}") from error


def encode_expression(value: expression.Expression) -> Any:
    return to_builtins(value)


def decode_expression(packed: Any) -> expression.Expression:
    found = from_builtins(packed)
    if not isinstance(found, expression.Column | expression.Literal | expression.Parameter | expression.Call):
        raise CorruptState("not an expression")
    return found


def encode_node(value: node.Node) -> bytes:
    """A query's node for messages: equal nodes give equal bytes."""
    return msgspec.msgpack.encode(to_builtins(value))


def decode_node(data: bytes) -> node.Node:
    found = _decode(data)
    if type(found) not in node.Node.__args__:
        raise CorruptState("not a node")
    return found  # type: ignore[return-value]


def encode_table(table: Table) -> bytes:
    return msgspec.msgpack.encode(to_builtins(table))


def decode_table(data: bytes) -> Table:
    found = _decode(data)
    if not isinstance(found, Table):
        raise CorruptState("not a table")
    return found


def encode_database(database: CatalogDatabase) -> bytes:
    return msgspec.msgpack.encode(to_builtins(database))


def decode_database(data: bytes) -> CatalogDatabase:
    found = _decode(data)
    if not isinstance(found, CatalogDatabase):
        raise CorruptState("not a database")
    return found


def encode_view(view: CatalogView) -> bytes:
    return msgspec.msgpack.encode(to_builtins(view))


def decode_view(data: bytes) -> CatalogView:
    found = _decode(data)
    if not isinstance(found, CatalogView):
        raise CorruptState("not a view")
    return found


def encode_account(account: Account) -> bytes:
    return msgspec.msgpack.encode(to_builtins(account))


def decode_account(data: bytes) -> Account:
    found = _decode(data)
    if not isinstance(found, Account):
        raise CorruptState("not an account")
    return found


def _decode(data: bytes) -> object:
    try:
        return from_builtins(msgspec.msgpack.decode(data))
    except msgspec.DecodeError as error:
        raise CorruptState(f"catalog entry: {error}") from error
