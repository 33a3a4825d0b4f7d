"""The name of each request about tables and views, `http.N`, for logs and traces of all processes (see `backend.network.origin`),
and for the page, which shows it with slow statements and with the last execution of a query.

A request's span is named by its method and route, never by what is in its path. Requests for the page, its figures, and the status
have no name.
"""

from __future__ import annotations

from itertools import count

from aiohttp import web
from aiohttp.typedefs import Handler

from backend.network.origin import Origin, current, observers

NAMED = ("/v1/databases/", "/v1/program")
_numbers = count(1)


@web.middleware
async def named_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """To be outside of `errors_as_json`, which makes errors into answers."""
    resource = request.match_info.route.resource
    if resource is None or not resource.canonical.startswith(NAMED):
        return await handler(request)
    name, status, span = f"http.{next(_numbers)}", 500, None
    if observers.spans is not None:
        facts: dict[str, str | int] = {"millrace.statement": name, "http.request.method": request.method, "http.route": resource.canonical}
        span = observers.spans.begin(f"{request.method} {resource.canonical}", "", facts)
    before = current.set(Origin(name, "" if span is None else span.trace))
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        current.reset(before)  # the connection's next request has the same context
        if span is not None:
            span.end({"http.response.status_code": status}, str(status) if status >= 500 else "")
