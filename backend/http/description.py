"""The OpenAPI document: every request with what it takes and gives. Bodies are described by their classes."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from backend.http import bodies, shown, values
from backend.http.interface import DATABASE

_REFERENCE = "#/components/schemas/{name}"
_BODIES = (
    bodies.LookupRequest, bodies.LookupAnswer, bodies.RangeRequest, bodies.ListedRows, bodies.NewRows, bodies.Changes, bodies.Row, bodies.TransactionRequest, bodies.TransactionAnswer,
    bodies.StatementAnswer, bodies.ProgramRequest, bodies.Views, bodies.MaintainedViews, bodies.Failure, bodies.DoneAnswer,
    bodies.ChangedRows, bodies.KeepChanges, bodies.Position,
    shown.Overview, shown.ShownGraph, shown.Queries, shown.Transitions, shown.SlowQueries, shown.Sessions, shown.Databases, shown.Explain,
    shown.ShownExplanation,
)  # fmt: skip
_FAILURES = {
    "400": "the request or its SQL is wrong, and will be wrong again",
    "401": "no account has this name and password from there (1045)",
    "403": "the account may not do this (1044, 1142, 1227, 3118)",
    "404": "no such database, table, view (1049, 1146, 1051) or row (1032), or its changes are not kept (1381)",
    "409": "what is there stands against it: a key (1062, 1451, 1452), a name (1007, 1050), another writer (1213)",
    "410": "changes after that epoch are not all kept any more (1236)",
    "413": "the request or its answer is too large (1153)",
    "415": "the body is not application/json",
    "500": "it may or may not have happened (1180), or something is broken: the log of the server says what",
    "503": "a part of the cluster is away for the moment; trying again may help",
    "507": "the disk is full (1021)",
}


def _parameter(place: str, name: str, meaning: str, **schema: Any) -> dict[str, Any]:
    found = {"name": name, "in": place, "description": meaning, "schema": schema or {"type": "string"}}
    return found | ({"required": True} if place == "path" else {})


_PATH = {
    "database": _parameter("path", "database", "the database that names are in", type="string", minLength=1),
    "view": _parameter("path", "view", "a view or table", type="string", minLength=1),
    "session": _parameter("path", "session", "the number of a connection", type="integer", minimum=0),
    "table": _parameter("path", "table", "a table with a primary key", type="string", minLength=1),
}
_KEY = _parameter("query", "key", "the primary key as JSON: 7, \"x\", or [7,\"x\"] for several columns") | {"required": True}
_KEYS = [
    _parameter("query", "key", "a key as JSON, once or more often", type="array", items={"type": "string"}),
    _parameter("query", "by", "the columns of the key; else those that tell the rows apart", type="array", items={"type": "string"}),
    _parameter("query", "block", "false: null for keys that are not at hand", type="boolean"),
]


def _operation(
    name: str,
    summary: str,
    given: type | None,
    gives: type,
    parameters: list[dict[str, Any]] | None = None,
    status: str = "200",
) -> dict[str, Any]:
    failures = {code: _content(meaning, bodies.Failure) for code, meaning in _FAILURES.items()}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {status: _content(gives.__doc__ or "", gives)} | failures,
    }
    if parameters:
        found["parameters"] = parameters
    if given is not None:
        found["requestBody"] = _content(given.__doc__ or "", given) | {"required": True}
    return found


def _content(meaning: str, body: type) -> dict[str, Any]:
    schema = {"$ref": _REFERENCE.format(name=body.__name__)}
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def _events(name: str, summary: str, given: type | None, gives: type, parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A stream of server-sent events, each with such data."""
    found = _operation(name, summary, given, gives, parameters)
    found["responses"]["200"]["content"] = {"text/event-stream": found["responses"]["200"]["content"]["application/json"]}
    return found


def _open(name: str, summary: str, content_type: str = "application/json") -> dict[str, Any]:
    """A request that anybody may make."""
    shown = {"description": summary, "content": {content_type: {"schema": {}}}}
    responses = {"200": shown} | ({"503": shown} if name == "health" else {})
    if name in ("status", "health", "metrics"):  # who says who they are has to be right
        responses["401"] = _content("not who they say they are", bodies.Failure)
    return {"get": {"operationId": name, "summary": summary, "security": [], "responses": responses}}


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/": _open("index", "where to look"),
        "/status": _open("status", "whether clients can connect; with the privilege PROCESS the processes and shards of the cluster"),
        "/health": _open("health", "200 if clients can connect, else 503"),
        "/metrics": _open("metrics", "the status in Prometheus' text format", "text/plain"),
        "/openapi.json": _open("openapi", "this document"),
        "/v1/overview": {"get": _operation("overview", "how the cluster is, and was for some minutes", None, shown.Overview)},
        "/v1/graph": {"get": _operation("graph", "tables, nodes and views, and what goes through them", None, shown.ShownGraph)},
        "/v1/queries": {"get": _operation("queries", "the statements that clients send, and what answers them", None, shown.Queries)},
        "/v1/transitions": {"get": _operation("transitions", "views that come, are filled, and go", None, shown.Transitions)},
        "/v1/slow": {"get": _operation("slow", "statements that took 100 ms or longer", None, shown.SlowQueries)},
        "/v1/sessions": {"get": _operation("sessions", "clients' connections", None, shown.Sessions)},
        "/v1/sessions/{session}": {
            "delete": _operation("kill", "KILL a connection, or only its query", None, bodies.DoneAnswer, [
                _parameter("query", "query", "true: KILL QUERY", type="boolean")
            ])
        },
        "/v1/databases": {"get": _operation("databases", "databases and their tables", None, shown.Databases)},
        f"{DATABASE}/explain": {"post": _operation("explain", "how a statement is answered", shown.Explain, shown.ShownExplanation)},
        "/v1/program": {
            "get": _operation("maintainedViews", "all queries that are maintained", None, bodies.MaintainedViews),
            "post": _operation("extendProgram", "carry out definition statements, all or none", bodies.ProgramRequest, bodies.DoneAnswer),
        },
        f"{DATABASE}/program": {
            "post": _operation("extendProgramIn", "the same with a default database", bodies.ProgramRequest, bodies.DoneAnswer)
        },
        f"{DATABASE}/views": {"get": _operation("namedViews", "the views of a database", None, bodies.Views)},
        f"{DATABASE}/views/{{view}}": {
            "get": _operation("lookupNamed", "the rows of some keys of a view or table", None, bodies.LookupAnswer, _KEYS),
            "delete": _operation("removeView", "drop a view", None, bodies.DoneAnswer),
        },
        f"{DATABASE}/views/{{view}}/changes": {
            "get": _events("changes", "what changes in a view or table, epoch by epoch", None, bodies.ChangedRows, [
                _parameter("query", "since", "the last epoch that is known already; else from now on", type="integer", minimum=0),
                _parameter("header", "Last-Event-ID", "the same, as browsers send it", type="string"),
            ]),
            "put": _operation("keepChanges", "keep changes from now on", bodies.KeepChanges, bodies.Position),
            "delete": _operation("forgetChanges", "keep changes no more", None, bodies.DoneAnswer),
        },
        f"{DATABASE}/subscribe": {
            "post": _events("subscribe", "the rows of one key of a view, each time they are others", bodies.LookupRequest, bodies.ListedRows)
        },
        f"{DATABASE}/lookup": {
            "post": _operation("lookup", "the rows of many keys of a view", bodies.LookupRequest, bodies.LookupAnswer)
        },
        f"{DATABASE}/range": {
            "post": _operation("range", "a part of a key's rows, by order", bodies.RangeRequest, bodies.ListedRows)
        },
        f"{DATABASE}/transactions": {
            "post": _operation("transact", "run statements, all or none", bodies.TransactionRequest, bodies.TransactionAnswer)
        },
        f"{DATABASE}/tables/{{table}}/rows": {
            "post": _operation("insertRows", "insert rows, all or none", bodies.NewRows, bodies.StatementAnswer, status="201")
        },
        f"{DATABASE}/tables/{{table}}/row": {
            "get": _operation("getRow", "the row with this primary key", None, bodies.Row, [_KEY]),
            "patch": _operation("updateRow", "change columns of the row with this key", bodies.Changes, bodies.StatementAnswer, [_KEY]),
            "delete": _operation("deleteRow", "delete the row with this key", None, bodies.StatementAnswer, [_KEY]),
        },
    }
    for path, found in paths.items():
        named = [parameter for name, parameter in _PATH.items() if f"{{{name}}}" in path]
        if named:
            found["parameters"] = named
    return paths


@cache
def description() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(_BODIES, ref_template=_REFERENCE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "millrace",
            "version": version("millrace"),
            "description": (values.__doc__ or "").strip(),
        },
        "security": [{"account": []}],
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "account": {"type": "http", "scheme": "basic", "description": "an account of MySQL"},
            },
        },
    }
