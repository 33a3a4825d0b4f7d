"""The JSON twins of the pages: what each of them shows, for programs. They are for accounts with the privilege PROCESS.

The cluster's token (see `backend.http.status`) will do for all that only reads. Databases, EXPLAIN and the own sessions are for every account.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec
from aiohttp import web

from backend.client.statements import Statements
from backend.execution.answering.advice import advice
from backend.execution.database import Database
from backend.execution.explaining.explanation import Explained, ExplainedStep
from backend.http import bodies, shown
from backend.http.answers import answer, read_body
from backend.http.authentication import Caller, Callers
from backend.http.metrics import exposition
from backend.http.observation import Observation
from backend.http.status import Status, is_operator
from backend.http.values import to_parameters
from backend.http.views_shown import TransitionLog, graph, kept_keys
from backend.processes.statement_counts import KindCount, StatementCount, quantiles
from controller.catalog import Catalog
from controller.privileges import sees_database
from controller.sql.planner import PlanCache
from dataflow.errors import Condition, InvalidStatement, MillraceError

QUERIES_MAX = 1_000
Work = Callable[[web.Request], Awaitable[msgspec.Struct]]


class Twins:
    def __init__(self, observation: Observation, status: Status, engine: Database, callers: Callers, token: str, shard_memory_bytes: int) -> None:
        self._observation = observation
        self._status = status
        self._engine = engine
        self._callers = callers
        self._token = token
        self._shard_memory_bytes = shard_memory_bytes
        self._plans = PlanCache()
        self._log = TransitionLog()
        observation.pictured = lambda picture: self._log.follow(picture, engine.catalog)

    def routes(self) -> list[web.RouteDef]:
        """Every path here is described in `description`, and a test compares the two."""
        operators: dict[str, Work] = {
            "/v1/overview": self._overview,
            "/v1/graph": self._graph,
            "/v1/queries": self._queries,
            "/v1/transitions": self._transitions,
            "/v1/slow": self._slow,
        }
        return [
            *[web.get(path, self._for_operators(work)) for path, work in operators.items()],
            web.get("/v1/sessions", self._sessions),
            web.delete("/v1/sessions/{session}", self._kill),
            web.get("/v1/databases", self._databases),
            web.post("/v1/databases/{database}/explain", self._explain),
        ]

    def _for_operators(self, work: Work) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            if not await is_operator(request, self._callers, self._token):
                if "Authorization" not in request.headers:
                    await self._callers.identify(request, None)
                raise InvalidStatement(Condition.SPECIFIC_ACCESS_DENIED, "PROCESS")
            return answer(await work(request))

        return handle

    async def _overview(self, request: web.Request) -> shown.Overview:
        found = await self._status()
        kinds = await self._observation.kinds()
        known = {field.name for field in msgspec.structs.fields(shown.ShownShard)}
        shards = [
            shown.ShownShard(**{name: value for name, value in each.items() if name in known}, limit_bytes=self._shard_memory_bytes)
            for each in found["shards"]
        ]
        return shown.Overview(
            version("millrace"), found["ready"], found["problems"], str(found["leader"] or ""), len(await self._observation.sessions()),
            [shown.ShownProcess(**each) for each in found["processes"]], shards,
            sorted(map(_kind, kinds.values()), key=lambda each: -each.count), self._observation.moments(),
        )  # fmt: skip

    async def _graph(self, request: web.Request) -> shown.ShownGraph:
        picture, statements = await self._observation.picture(), await self._observation.statements()
        return graph(picture, statements, self._engine.catalog)

    async def _queries(self, request: web.Request) -> shown.Queries:
        found = sorted(await self._observation.statements(), key=lambda each: -each.seconds)
        return shown.Queries([_query(each) for each in found[:QUERIES_MAX]])

    async def _transitions(self, request: web.Request) -> shown.Transitions:
        return self._log.shown(await self._observation.picture(), self._engine.catalog)

    async def _slow(self, request: web.Request) -> shown.SlowQueries:
        return shown.SlowQueries([
            shown.ShownSlow(_moment(each.moment), each.seconds, each.user, each.host, each.database, each.connection, each.text, each.id)
            for each in await self._observation.slow()
        ])  # fmt: skip

    async def metrics(self, request: web.Request) -> web.Response:
        """For everybody: whether clients can connect. The rest is for operators."""
        accept = request.headers.get("Accept", "")
        is_all, found = await is_operator(request, self._callers, self._token), await self._status()
        if is_all:
            kinds, views = [], []
            with contextlib.suppress(MillraceError, OSError, TimeoutError):  # where shard 0 is away, what is left is told
                kinds, views = list((await self._observation.kinds()).values()), (await self._graph(request)).views
            content, kind = exposition(accept, found, self._shard_memory_bytes, kinds, views)
        else:
            content, kind = exposition(accept, {"ready": found["ready"]})
        return web.Response(body=content, headers={"Content-Type": kind})

    # --- for every account

    async def _sessions(self, request: web.Request) -> web.Response:
        mine = None if await is_operator(request, self._callers, self._token) else await self._callers.identify(request, None)
        rows = await self._observation.sessions()
        sessions = [shown.ShownSession(*row) for row in rows if mine is None or row[1] == mine.account.user]
        return answer(shown.Sessions(sorted(sessions, key=lambda each: each.id)))

    async def _kill(self, request: web.Request) -> web.Response:
        caller = await self._callers.identify(request, None)
        text = request.match_info["session"]
        if not text.isdecimal() or len(text) > 18:
            raise ValueError("a session is a number")
        user = None if caller.rights.has_any("SUPER", "CONNECTION_ADMIN") else caller.account.user
        outcomes = await self._observation.kill(int(text), request.query.get("query") == "true", user)
        if "denied" in outcomes:
            raise InvalidStatement(Condition.NOT_THREAD_OWNER, int(text))
        if "done" not in outcomes:
            raise InvalidStatement(Condition.UNKNOWN_THREAD, int(text))
        return answer(bodies.DoneAnswer())

    async def _databases(self, request: web.Request) -> web.Response:
        caller = await self._callers.identify(request, None)
        await self._engine.refresh_catalog()
        catalog = self._engine.catalog
        found: dict[str, list[str]] = {name: [] for name in sorted(catalog.databases) if sees_database(caller, name)}
        for database, name in [*((each.database, each.name) for each in catalog.tables.values()), *catalog.views]:
            if database in found and caller.rights.sees_table(database, name):
                found[database].append(name)
        return answer(shown.Databases({database: sorted(names) for database, names in found.items()}))

    async def _explain(self, request: web.Request) -> web.Response:
        caller = await self._callers.identify(request, request.match_info["database"])
        body = await read_body(request, shown.Explain)
        explained = await self._engine.with_reuse(await self._explained(body, caller))
        kept = None if explained.view is None else kept_keys((await self._observation.picture()).hosted, explained.view.name)
        name = None if explained.view is None else explained.view.name.hex()
        return answer(shown.ShownExplanation(_plan(explained.step), name, kept, explained.refusal, advice(explained.refusal)))

    async def _explained(self, body: shown.Explain, caller: Caller) -> Explained:
        statements = Statements(self._engine, caller.database, self._plans, caller)
        parameters = to_parameters(body.parameters)

        async def explained(catalog: Catalog) -> Explained:
            plan, values = statements.plan(body.sql, parameters, catalog)
            given: list[Any] = list(parameters if values is None else values)
            return self._engine.explain(plan, [*given, *[None] * len(plan.facts)])

        return await statements.with_catalog(explained)


def _plan(step: ExplainedStep) -> shown.ExplainedPlan:
    return shown.ExplainedPlan(step.text, [_plan(each) for each in step.inputs])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(round(seconds, 3), UTC)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 4)


def _kind(kind: KindCount) -> shown.ShownKind:
    timed = sum(kind.bins)
    mean_ms = 1000 * kind.seconds / timed if timed else None
    return shown.ShownKind(
        kind.kind, kind.count, kind.hits, kind.asked, kind.evaluated, kind.errors, mean_ms, _ms(quantiles(kind.bins, (0.95,))[0])
    )


def _query(found: StatementCount) -> shown.ShownQuery:
    timed = sum(found.bins)
    # A bin is known by its upper end, which nothing in it need have reached.
    p50, p95, p99 = [min(each, found.longest_s) if each and found.longest_s else each for each in quantiles(found.bins, (0.5, 0.95, 0.99))]
    answered = "view" if found.views else "evaluated" if found.why else "written" if found.count else ""
    return shown.ShownQuery(
        found.database, found.text, found.kind, found.count, found.hits, found.asked, found.evaluated, answered,
        1000 * found.seconds / timed if timed else None, _ms(p50), _ms(p95), _ms(p99), 1000 * found.longest_s, _moment(found.last),
        [each.hex() for each in found.views], found.why, found.advice, found.last_id,
    )  # fmt: skip
