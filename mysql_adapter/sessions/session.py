"""One client's state: database, variables, transaction, prepared statements, diagnostics.

`run` takes one statement and returns its outcome; how it came in and how the outcome goes out
is the connection's business. Statements about data are planned and executed below; all others
are answered in `statements`.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from backend.execution.counted_statements import SLOW_S, CountedStatement
from backend.execution.held_locks import TIMEOUT_S
from backend.execution.outcome import Answer, Done, ResultSet, RowStream, Warning
from backend.execution.transaction import Transaction
from controller.accounts import Account, Rights
from controller.catalog import Catalog, CatalogDatabase
from controller.privileges import check_sees_database
from controller.roles import with_roles
from controller.sql.definitions.temporary import temporary_tables, with_temporary
from controller.sql.plan import OutputColumn
from controller.sql.text.lexer import leading_words
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.functions.waiting import WaitingCalls
from dataflow.values import types
from dataflow.values.types import Value
from mysql_adapter.neighbours import tell_catalog
from mysql_adapter.sessions import dispatch, preparing
from mysql_adapter.sessions.abandoned_tables import drop_statement
from mysql_adapter.sessions.counts import end_counts
from mysql_adapter.sessions.facts import fixed_seconds, packed_time
from mysql_adapter.sessions.planned import run_planned
from mysql_adapter.sessions.prepared import Prepared
from mysql_adapter.sessions.select_limit import select_limit
from mysql_adapter.sessions.table_locks import TableLocks
from mysql_adapter.sessions.variables import NUMBERS, TEXTS, Variables, settings_of
from mysql_adapter.statements.accounts import check_password
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.select_into import may_select_into, select_into
from mysql_adapter.wire import packets
from mysql_adapter.wire.charsets import CollationEntry, charset_of, collation_by_id, collation_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mysql_adapter.connection import Connection
    from mysql_adapter.environment import Environment
    from mysql_adapter.wire.answers import ResultFormat
    from mysql_adapter.wire.parameters import Typed

T = TypeVar("T")

_COUNTS = re.compile(r"@@(?:(?:session|local)\.)?(?:warning|error)_count\b", re.IGNORECASE)
"""Who asks for these wants to know of the statement before."""

_ending: set[asyncio.Task[Done]] = set()


class Session:
    def __init__(
        self, environment: Environment, connection: Connection, account: Account, user: str, collation_id: int
    ) -> None:
        self.environment = environment
        self.connection = connection
        self.account = account
        self.user = user
        self.command_count = 0
        self.select_count = 0
        self.asked_count = self.evaluated_count = 0
        """SELECTs that were answered by a worker's view, and from the tables; others were at hand in shared memory."""
        self.statement = ""
        self.statement_started = time.time()
        self.counted: CountedStatement | None = None
        """The statement that is being executed, if it has a plan."""
        self.transaction: Transaction | None = None
        self._read_only = False
        self.prepared: dict[int, Prepared] = {}
        self.named_prepared: dict[str, Prepared] = {}
        self._next_prepared_id = 1
        self._accounts: tuple[object, object] = (None, None)
        self._rights = Rights(None)
        self._initial_collation_id = collation_id
        self.database: str | None = None
        self._start()

    def _start(self) -> None:
        """The state of a connection that has just logged in, except for the database."""
        every = self.environment.globals.get("activate_all_roles_on_login")
        self.roles = self.account.roles if every else self.account.default_roles
        """Those that are active."""
        self.variables = Variables(self.environment.globals)
        self._owner = ""
        self.user_variables: dict[str, Value] = {}
        self.warnings: tuple[Warning, ...] = ()
        self.last_insert_id = 0
        self.row_count = -1
        self.found_rows = 0
        self.waiting_calls: WaitingCalls = WaitingCalls()
        self.table_locks: TableLocks | None = None
        self.next_transaction: dict[str, Value] = {}
        """What SET TRANSACTION said of the next transaction alone."""
        collation = collation_by_id(self._initial_collation_id)
        self.set_names(collation.charset.name, collation.name)
        self.settings_changed()

    # Settings

    def set_names(self, charset: str, collation: str | None) -> None:
        found = charset_of(charset)
        assert found is not None
        for side in ("client", "connection", "results"):
            self.variables.put(f"character_set_{side}", found.name)
        default = str(self.variables.get("default_collation_for_utf8mb4")) if found.name == "utf8mb4" else found.default_collation
        self.variables.put("collation_connection", collation or default)

    def settings_changed(self) -> None:
        """Work out what follows from the variables; to be called whenever they have changed."""
        get = self.variables.get
        zone = str(get("time_zone"))
        self.time_zone = "UTC" if zone.upper() == "SYSTEM" else zone
        client = charset_of(str(get("character_set_client")))
        assert client is not None
        self.client_codec = client.codec
        self.settings, self.modes = settings_of(
            str(get("sql_mode")),
            str(get("collation_connection")),
            bool(get("foreign_key_checks")),
            self.time_zone,
            int(str(get("cte_max_recursion_depth"))),
            client.codec,
            *[str(get(name)) for name in TEXTS],
            *[int(str(get(name))) for name in NUMBERS],
        )
        if self._owner:
            self.settings = replace(self.settings, owner=self._owner)
        if fixed := fixed_seconds(self):
            self.modes = replace(self.modes, now=packed_time(fixed, "UTC"))
        self.backslash_escapes = self.settings.backslash_escapes
        self.autocommit = bool(get("autocommit"))
        self.select_limit = select_limit(get("sql_select_limit"))
        results = get("character_set_results")
        found = charset_of(str(results)) if results is not None else None
        self.results_collation_id, self.results_codec = None, "utf-8"
        if found is not None:
            self.results_collation_id, self.results_codec = found.default_collation_id, found.codec
        patience = get("innodb_lock_wait_timeout")
        self.long_query_s = float(str(get("long_query_time")))
        self.noticed_s = min(self.long_query_s, SLOW_S)
        self.lock_timeout_s = float(patience) if isinstance(patience, int) else TIMEOUT_S
        timeout = get("wait_timeout")
        self.idle_timeout_s = float(timeout) if isinstance(timeout, int) else 28800.0
        timeout = get("net_write_timeout")
        if isinstance(timeout, int):
            self.connection.stream.write_timeout_s = float(timeout)

    @property
    def client_collation(self) -> CollationEntry:
        found = collation_of(str(self.variables.get("collation_connection")))
        assert found is not None
        return found

    @property
    def status(self) -> int:
        status = packets.AUTOCOMMIT if self.autocommit else 0
        if self.transaction is not None:
            status |= packets.IN_READ_ONLY_TRANSACTION if self._read_only else packets.IN_TRANSACTION
        if not self.backslash_escapes:
            status |= packets.NO_BACKSLASH_ESCAPES
        return status

    def decode(self, data: bytes) -> str:
        codec = self.client_codec
        return data.decode(codec, "surrogateescape" if codec == "utf-8" else "replace")

    def format(self, columns: tuple[OutputColumn, ...]) -> ResultFormat:
        return self.environment.formats.of(columns, self.results_collation_id, self.results_codec, self.time_zone)

    def refresh_volatile_variables(self) -> None:
        """Those variables whose value is kept elsewhere."""
        self.variables.put("warning_count", len(self.warnings))
        self.variables.put("error_count", sum(each.level == "Error" for each in self.warnings))
        self.variables.put("last_insert_id", self.last_insert_id)
        self.variables.put("pseudo_thread_id", self.connection.id)

    # Privileges

    @property
    def host_name(self) -> str:
        return self.connection.host_name

    @property
    def catalog(self) -> Catalog:
        """The newest known here."""
        return self.environment.database.catalog

    @property
    def rights(self) -> Rights:
        """What the account may do, as of the newest catalog known here."""
        catalog = self.environment.database.catalog
        known = (catalog.accounts, self.roles)
        if known[0] is not self._accounts[0] or known[1] is not self._accounts[1]:
            self._accounts = known
            accounts = catalog.known_accounts
            self._rights = Rights(with_roles(accounts.get(self.account.name), self.roles, accounts))
        return self._rights

    # Statements

    async def run(self, sql: str) -> Answer:
        self.statement, self.statement_started = sql, time.time()
        handler = None
        if self.account.expired:
            check_password(self, sql)
        if not dispatch.is_planned(sql):
            words = leading_words(sql, 2)
            handler = dispatch.handler_of(words)
            if handler is not None and dispatch.keeps_warnings(words):
                return self.ran(await handler(self, TokenCursor(sql, self.settings)))
        if "_count" not in sql or _COUNTS.search(sql) is None:
            self.warnings = ()
        if handler is not None:
            return self.ran(await handler(self, TokenCursor(sql, self.settings)))
        if may_select_into(sql):
            done = await select_into(self, TokenCursor(sql, self.settings))
            if done is not None:
                return self.ran(done)
        return self.ran(await run_planned(self, sql, stream=True))

    def ran(self, outcome: Answer) -> Answer:
        if isinstance(outcome, RowStream):
            self.row_count = -1
            return outcome
        if outcome.warnings:
            self.warnings = outcome.warnings
        if isinstance(outcome, ResultSet):
            self.row_count = -1
            self.found_rows = len(outcome.rows) if outcome.found_rows is None else outcome.found_rows
        else:
            self.row_count = outcome.matched if self.connection.stream.capabilities & packets.FOUND_ROWS else outcome.affected
            if outcome.generated_id is not None:
                self.last_insert_id = outcome.generated_id
        return outcome

    def streamed(self, stream: RowStream) -> None:
        """All rows of a stream have been sent."""
        self.found_rows = stream.skipped() + stream.count
        self.warnings = stream.warnings()

    def failed(self, error: MillraceError) -> None:
        """Remember an error that was reported; a lost transaction is over."""
        condition = error.condition
        self.warnings = (*self.warnings, Warning("Error", condition.code, str(error)))
        self.row_count = -1
        if condition is Condition.DEADLOCK:
            self.rollback()

    async def define(self, sql: str) -> Done:
        """A definition statement commits whatever is open, before it runs, unless it is about temporary tables."""
        is_temporary = "TEMPORARY" in [word.upper() for word in leading_words(sql, 2)]
        if not is_temporary:
            await self.commit()
            self.next_transaction = {}  # that commit ended the next transaction, too
        if self.transaction is None:
            self._take_characteristics()
        self.check_writable()
        if is_temporary and not self._owner:
            self._owner = f"{self.environment.process}-{self.connection.id}"
            self.settings_changed()
        try:
            done = await self.environment.database.define(sql, self.database, self.settings)
        finally:
            if self._owner:
                self.environment.plans.forget(self._owner)
        if not is_temporary:
            await tell_catalog(self.environment)
        return done

    def own(self, catalog: Catalog) -> Catalog:
        """The catalog with the session's temporary tables in it."""
        return with_temporary(catalog, self.settings.owner)

    def _drop_temporary(self) -> None:
        """Its temporary tables end with the session."""
        if not self._owner:
            return
        database = self.environment.database
        sql = drop_statement(database.catalog, self._owner)
        if sql is not None:
            task = asyncio.ensure_future(database.define(sql, None, self.settings))
            _ending.add(task)
            task.add_done_callback(_ending.discard)

    async def prepare(self, sql: str) -> Prepared:
        return await preparing.prepare(self, sql)

    async def execute(self, prepared: Prepared, values: Sequence[Typed]) -> Answer:
        return await preparing.execute(self, prepared, values)

    def keep_prepared(
        self, sql: str, parameter_types: tuple[types.SqlType, ...], columns: tuple[OutputColumn, ...], planned: bool
    ) -> Prepared:
        prepared = Prepared(self._next_prepared_id, sql, parameter_types, columns, planned, self.database)
        self._next_prepared_id += 1
        self.prepared[prepared.id] = prepared
        return prepared

    # Catalog

    async def use(self, name: str) -> None:
        def find(catalog: Catalog) -> CatalogDatabase:
            check_sees_database(self, name)
            return catalog.database(name)

        found = await self.environment.with_catalog(find)
        self.database = found.name
        collation = collation_of(found.collation)
        if collation is not None:
            self.variables.put("collation_database", collation.name)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        return self.transaction is not None

    def statement_transaction(self) -> Transaction | None:
        """The transaction of the next statement; None where it is one of its own."""
        if self.transaction is None:
            repeatable = self._take_characteristics()
            if not self.autocommit:
                self.transaction = self.environment.database.begin(repeatable)
        return self.transaction

    def _take_characteristics(self) -> bool:
        """Of the transaction that begins now: whether it is READ ONLY, and, returned, REPEATABLE READ or stricter."""
        names = "transaction_read_only", "transaction_isolation"
        read_only, isolation = (self.next_transaction.get(name, self.variables.get(name)) for name in names)
        self.next_transaction = {}
        self._read_only = bool(read_only)
        return isolation in ("REPEATABLE-READ", "SERIALIZABLE")

    @property
    def characteristics(self) -> dict[str, Value]:
        """Those of the open transaction, for the one that is chained to it."""
        if self.transaction is None:
            return {}
        level = "REPEATABLE-READ" if self.transaction.repeatable else "READ-COMMITTED"
        return {"transaction_read_only": int(self._read_only), "transaction_isolation": level}

    def has_temporary(self, database: str | None, name: str) -> bool:
        tables = temporary_tables(self.catalog, self._owner).values() if self._owner else ()
        return any((table.database, table.name) == (database, name) for table in tables)

    def check_writable(self, tables: tuple[int, ...] = ()) -> None:
        """Whether the transaction may change tables of these ids: a READ ONLY one may change the session's temporary tables."""
        if self._read_only and not (tables and self._owner and set(tables) <= temporary_tables(self.catalog, self._owner).keys()):
            raise InvalidStatement(Condition.READ_ONLY_TRANSACTION)

    async def begin(self, read_only: bool | None = None, snapshot: bool = False) -> None:
        """`snapshot`: if reads are to be repeatable, then as of now."""
        await self.commit()
        repeatable = self._take_characteristics()
        if read_only is not None:
            self._read_only = read_only
        self.transaction = self.environment.database.begin(repeatable)
        if repeatable and snapshot:
            await self.transaction.epoch()

    async def commit(self) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            await transaction.commit()

    def rollback(self) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            transaction.rollback()

    # The connection

    def reset(self) -> None:
        """COM_RESET_CONNECTION: everything but user and database as after login."""
        self.close()
        self._start()

    def close(self) -> None:
        self.rollback()
        end_counts(self)
        self.environment.services.owner_gone(self.connection.id)
        self._drop_temporary()
        self.prepared.clear()
        self.named_prepared.clear()

    def close_after_answer(self) -> None:
        self.connection.close_soon()
