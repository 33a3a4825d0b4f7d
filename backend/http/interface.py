"""The requests: each identifies its caller, and does with the client library what the caller may.

Views are planned once and kept as long as the catalog stays the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from aiohttp import web

from backend.client.async_database import AsyncDatabase, AsyncTable
from backend.client.async_view import AsyncView
from backend.client.changes import ChangeReader, subscription
from backend.client.statements import Result
from backend.client.values import Rows
from backend.execution.counted_statements import StatementCounts
from backend.execution.database import Database
from backend.execution.memory_account import LIMIT_BYTES, MemoryAccount
from backend.execution.pace import paced
from backend.feeds.feed_source import FeedSource
from backend.http import bodies
from backend.http.answers import answer, read_body
from backend.http.authentication import Caller, Callers
from backend.http.events import EventStreams, changed, of_key
from backend.http.values import number_with_point, to_json, to_key, to_parameter, to_parameters
from backend.views.shared_view import SharedViews
from controller.catalog import Catalog
from controller.privileges import check_needs, check_sees_database, check_sees_table, check_text
from controller.sql.planner import PlanCache
from controller.sql.references import Need
from dataflow.errors import Condition, InvalidStatement, Retryable

VIEWS_MAX = 1_000
TRIES_MAX = 20
PAUSE_S = 0.02

DENIED = frozenset({Condition.ACCESS_DENIED_DB, Condition.TABLE_ACCESS_DENIED, Condition.COLUMN_ACCESS_DENIED, Condition.SPECIFIC_ACCESS_DENIED})

Work = Callable[[web.Request, Caller], Coroutine[Any, Any, web.StreamResponse]]

DATABASE = "/v1/databases/{database}"


class Interface:
    def __init__(self, engine: Database, shared: SharedViews | None, statement_memory_bytes: int = LIMIT_BYTES) -> None:
        self._engine = engine
        self._shared = shared
        self._statement_memory_bytes = statement_memory_bytes
        self.callers = Callers(engine)
        self.events = EventStreams()
        self.counts = StatementCounts()
        self._plans = PlanCache()
        self._catalog: Catalog | None = None
        self._views: dict[object, AsyncView] = {}

    def routes(self) -> list[web.RouteDef]:
        """Every path here is described in `description`, and a test compares the two."""
        by_method: dict[tuple[str, str], Work] = {
            ("GET", "/v1/program"): self._maintained,
            ("POST", "/v1/program"): self._extend_program,
            ("GET", f"{DATABASE}/views"): self._named_views,
            ("GET", f"{DATABASE}/views/{{view}}"): self._look_up_named,
            ("DELETE", f"{DATABASE}/views/{{view}}"): self._remove_view,
            ("GET", f"{DATABASE}/views/{{view}}/changes"): self._changes,
            ("PUT", f"{DATABASE}/views/{{view}}/changes"): self._keep_changes,
            ("DELETE", f"{DATABASE}/views/{{view}}/changes"): self._forget_changes,
            ("POST", f"{DATABASE}/subscribe"): self._subscribe,
            ("POST", f"{DATABASE}/lookup"): self._look_up,
            ("POST", f"{DATABASE}/range"): self._range,
            ("POST", f"{DATABASE}/program"): self._extend_program,
            ("POST", f"{DATABASE}/transactions"): self._transact,
            ("POST", f"{DATABASE}/tables/{{table}}/rows"): self._insert,
            ("GET", f"{DATABASE}/tables/{{table}}/row"): self._get,
            ("PATCH", f"{DATABASE}/tables/{{table}}/row"): self._update,
            ("DELETE", f"{DATABASE}/tables/{{table}}/row"): self._delete,
        }
        return [web.route(method, path, self._identified(work)) for (method, path), work in by_method.items()]

    def _identified(self, work: Work) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answered(request: web.Request, caller: Caller) -> web.StreamResponse:
            return await paced(work(request, caller), MemoryAccount(self._statement_memory_bytes))

        async def handle(request: web.Request) -> web.StreamResponse:
            database, known = request.match_info.get("database"), self._engine.catalog.version
            try:
                return await answered(request, await self.callers.identify(request, database))
            except InvalidStatement as error:
                if error.condition not in DENIED:
                    raise
                await self._engine.refresh_catalog()  # the privilege may have been granted a moment ago
                if self._engine.catalog.version == known:
                    raise
            return await answered(request, await self.callers.identify(request, database))

        return handle

    def _database(self, caller: Caller) -> AsyncDatabase:
        return AsyncDatabase(self._engine, caller.database, self._shared, plans=self._plans, session=caller, counts=self.counts)

    def _table(self, request: web.Request, caller: Caller) -> AsyncTable:
        name = request.match_info["table"]
        self._check_sees(name, caller)
        return self._database(caller).table(name)

    def _check_sees(self, name: str, caller: Caller) -> None:
        database, _, table = name.rpartition(".")
        check_sees_table(caller, database or caller.database, table)

    # --- views

    async def _named_views(self, request: web.Request, caller: Caller) -> web.Response:
        assert caller.database is not None
        await self._engine.refresh_catalog()
        check_sees_database(caller, caller.database)
        catalog = self._engine.catalog
        catalog.database(caller.database)
        seen = [each for each in catalog.views_of(caller.database) if caller.rights.sees_table(each.database, each.name)]
        return answer(bodies.Views([bodies.NamedView(each.name, each.select) for each in seen]))

    async def _look_up_named(self, request: web.Request, caller: Caller) -> web.Response:
        _check_query(request)
        keys = [_from_json(each) for each in request.query.getall("key", [])]
        by = request.query.getall("by", None)
        block = request.query.get("block", "true")
        if block not in ("true", "false"):
            raise ValueError("block is true or false")
        body = bodies.LookupRequest(keys or [[]], view=request.match_info["view"], by=by, block=block == "true")
        return await self._found(body, caller)

    async def _look_up(self, request: web.Request, caller: Caller) -> web.Response:
        return await self._found(await read_body(request, bodies.LookupRequest), caller)

    async def _range(self, request: web.Request, caller: Caller) -> web.Response:
        body = await read_body(request, bodies.RangeRequest)
        key = to_key(body.key)
        view = await self._view(body, caller)
        rows = await view.range(
            *(key if isinstance(key, tuple) else (key,)),
            low=to_key(body.low),
            high=to_key(body.high),
            limit=body.limit,
            descending=body.descending,
            inclusive=body.inclusive,
        )
        return answer(bodies.ListedRows(list(view.columns), to_json(rows)))

    async def _found(self, body: bodies.LookupRequest, caller: Caller) -> web.Response:
        if len(body.keys) > bodies.KEYS_MAX:
            raise ValueError(f"at most {bodies.KEYS_MAX} keys")
        keys = [to_key(each) for each in body.keys]
        view = await self._view(body, caller)
        if body.block:
            rows: list[Any] = await view.lookup_many(keys)
        else:
            rows = [view.try_lookup(key) for key in keys]
        return answer(bodies.LookupAnswer(list(view.columns), [None if each is None else to_json(each) for each in rows]))

    async def _view(self, body: bodies.LookupRequest | bodies.RangeRequest, caller: Caller) -> AsyncView:
        """The view, if the caller may read it; who may not does not learn what else is wrong."""
        if bool(body.query) == bool(body.view):
            raise ValueError("either query or view has to be given")
        query, named, by = body.query or body.view, not body.query, body.by
        if named:
            self._check_sees(query, caller)
        if self._engine.catalog is not self._catalog:
            self._catalog = self._engine.catalog
            self._views.clear()
        key = (caller.database, query, None if by is None else tuple(by), named)
        kept = self._views.get(key)
        if kept is None:
            everyones = AsyncDatabase(self._engine, caller.database, self._shared, plans=self._plans, counts=self.counts)
            try:
                kept = await (everyones.named_view(query, by) if named else everyones.query_view(query))
            except InvalidStatement:
                if not named:
                    check_text(caller, query)
                raise
            if len(self._views) >= VIEWS_MAX:
                self._views.clear()
            self._views[key] = kept
        await self._database(caller).check_select(kept.query.sql, kept.query.key_length)
        return kept

    # --- what changes

    def _change_reader(self, request: web.Request, caller: Caller) -> ChangeReader:
        name = request.match_info["view"]
        self._check_sees(name, caller)

        def check(source: FeedSource) -> None:
            database, _, table = source.name.partition(".")
            check_needs(caller, [] if caller.rights.everything else [Need("ALTER", database, table)])

        return self._database(caller).change_reader(name, check)

    async def _changes(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        _check_query(request)
        reader = self._change_reader(request, caller)
        given = request.headers.get("Last-Event-ID") or request.query.get("since")
        if given is not None and not given.isdigit():
            raise ValueError("since is an epoch")
        since = await reader.position() if given is None else int(given)
        await reader.check(since)
        return await self.events.send(request, changed(reader, since))

    async def _keep_changes(self, request: web.Request, caller: Caller) -> web.Response:
        body = await read_body(request, bodies.KeepChanges)
        return answer(bodies.Position(await self._change_reader(request, caller).keep(body.seconds, body.bytes)))

    async def _forget_changes(self, request: web.Request, caller: Caller) -> web.Response:
        await self._change_reader(request, caller).forget()
        return answer(bodies.DoneAnswer())

    async def _subscribe(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        body = await read_body(request, bodies.LookupRequest)
        if len(body.keys) != 1:
            raise ValueError("one key is subscribed to")
        view, key = await self._view(body, caller), to_key(body.keys[0])
        await view.lookup(key)

        async def look_up() -> Rows:
            """What the caller may read by now."""
            return await (await self._view(body, caller)).lookup(key)

        return await self.events.send(request, of_key(view.columns, subscription(look_up)))

    async def _remove_view(self, request: web.Request, caller: Caller) -> web.Response:
        await self._database(caller).remove_view(request.match_info["view"])
        return answer(bodies.DoneAnswer())

    # --- tables

    async def _insert(self, request: web.Request, caller: Caller) -> web.Response:
        body = await read_body(request, bodies.NewRows)
        table = self._table(request, caller)
        rows = [{name: to_parameter(each) for name, each in row.items()} for row in body.rows]
        result = await (table.insert(rows[0]) if len(rows) == 1 else table.insert_many(rows))
        return answer(_result(result), 201)

    async def _get(self, request: web.Request, caller: Caller) -> web.Response:
        table = request.match_info["table"]
        view = await self._view(bodies.LookupRequest([], view=table), caller)
        [rows] = await view.lookup_many([_key(request)])
        if not rows:
            raise InvalidStatement(Condition.RECORD_NOT_FOUND, table)
        return answer(bodies.Row(dict(zip(view.columns, to_json(rows)[0]))))

    async def _update(self, request: web.Request, caller: Caller) -> web.Response:
        body = await read_body(request, bodies.Changes)
        values = {name: to_parameter(each) for name, each in body.values.items()}
        table = self._table(request, caller)
        return answer(_result(await table.update(_key(request), values)))

    async def _delete(self, request: web.Request, caller: Caller) -> web.Response:
        table = self._table(request, caller)
        return answer(_result(await table.delete(_key(request))))

    # --- transactions and the program

    async def _transact(self, request: web.Request, caller: Caller) -> web.Response:
        """Nobody waits for the caller between its statements, so losing a race is tried again here."""
        body = await read_body(request, bodies.TransactionRequest)
        statements = [(each.sql, to_parameters(each.parameters)) for each in body.statements]
        database = self._database(caller)
        for attempt in range(TRIES_MAX):
            try:
                async with database.transaction() as transaction:
                    results = [await transaction.execute(sql, parameters) for sql, parameters in statements]
                return answer(bodies.TransactionAnswer([_result(each) for each in results]))
            except Retryable as error:
                if error.condition is not Condition.DEADLOCK or attempt == TRIES_MAX - 1:
                    raise
            await asyncio.sleep(random.random() * PAUSE_S)
        raise AssertionError("unreachable")

    async def _extend_program(self, request: web.Request, caller: Caller) -> web.Response:
        body = await read_body(request, bodies.ProgramRequest)
        await self._database(caller).extend_program(body.sql)
        return answer(bodies.DoneAnswer())

    async def _maintained(self, request: web.Request, caller: Caller) -> web.Response:
        check_needs(caller, [Need("SELECT", "millrace", "views")])
        views = [
            bodies.MaintainedView(
                shard, view.name.hex(), view.definition, "full" if view.reason else "partial", view.keys,
                view.rows, view.size_bytes, view.hits, view.misses, view.evictions, list(view.names), datetime.fromtimestamp(int(view.since), UTC),
            )
            for shard, hosted in await self._engine.view_status()
            for view in hosted.views
        ]
        return answer(bodies.MaintainedViews(views))


# --- what comes in


_decode_value = msgspec.json.Decoder(float_hook=number_with_point).decode


def _from_json(text: str) -> Any:
    try:
        return _decode_value(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"a key in the address is JSON, texts in quotes: {error}") from None


def _check_query(request: web.Request) -> None:
    """Raises ValueError where it is no UTF-8, and so would be read as something else."""
    unquote_to_bytes(request.rel_url.raw_query_string).decode()


def _key(request: web.Request) -> Any:
    _check_query(request)
    keys = request.query.getall("key", [])
    if len(keys) != 1:
        raise ValueError("one key has to be given: ?key=7, or ?key=[7,\"x\"] for several columns")
    return to_key(_from_json(keys[0]))


def _result(result: Result) -> bodies.StatementAnswer:
    return bodies.StatementAnswer(list(result.columns), to_json(list(result.rows)), result.affected, result.last_insert_id)


