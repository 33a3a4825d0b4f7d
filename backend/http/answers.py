"""Answers, and errors with the status code that says what the caller can do about them."""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from backend.http.bodies import Error, Failure
from backend.http.values import number_with_point, printable, without_surrogates
from dataflow.errors import Condition, InvalidStatement, MillraceError, Retryable, Unsupported

REQUEST_BYTES_MAX = 16 << 20
ANSWER_BYTES_MAX = 64 << 20

_STATUS = {
    Condition.ACCESS_DENIED: 401,
    Condition.ACCESS_DENIED_DB: 403,
    Condition.TABLE_ACCESS_DENIED: 403,
    Condition.COLUMN_ACCESS_DENIED: 403,
    Condition.SPECIFIC_ACCESS_DENIED: 403,
    Condition.ACCOUNT_LOCKED: 403,
    Condition.UNKNOWN_DATABASE: 404,
    Condition.UNKNOWN_TABLE: 404,
    Condition.UNKNOWN_TABLE_DROP: 404,
    Condition.RECORD_NOT_FOUND: 404,
    Condition.CHANGES_NOT_KEPT: 404,
    Condition.CHANGES_GONE: 410,
    Condition.DUPLICATE_ENTRY: 409,
    Condition.ROW_IS_REFERENCED: 409,
    Condition.NO_REFERENCED_ROW: 409,
    Condition.DEADLOCK: 409,
    Condition.DB_CREATE_EXISTS: 409,
    Condition.TABLE_EXISTS: 409,
    Condition.PACKET_TOO_LARGE: 413,
    Condition.TRANSACTION_TOO_LARGE: 413,
    Condition.DISK_FULL: 507,
    Condition.OUTCOME_UNKNOWN: 500,
}

Body = TypeVar("Body")
log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


def answer(body: msgspec.Struct, status: int = 200) -> web.Response:
    try:
        content = _encode(body)
    except UnicodeEncodeError:
        content = _encode(without_surrogates(msgspec.to_builtins(body)))
    if len(content) > ANSWER_BYTES_MAX:
        raise MillraceError(Condition.PACKET_TOO_LARGE)
    return web.Response(body=content, status=status, content_type="application/json")


async def read_body(request: web.Request, kind: type[Body]) -> Body:
    """The request's JSON. Only what says that it is JSON: a web page may send anything else unasked."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(reason="the body has to be application/json")
    return msgspec.json.Decoder(kind, float_hook=number_with_point).decode(await request.read())


def status_of(error: MillraceError) -> int:
    found = _STATUS.get(error.condition)
    if found is not None:
        return found
    if isinstance(error, Retryable):
        return 503
    return 400 if isinstance(error, InvalidStatement | Unsupported) else 500


def failure(status: int, code: int, sqlstate: str, message: str) -> web.Response:
    response = answer(Failure(Error(code, sqlstate, printable(message))), status)
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="millrace", charset="UTF-8"'
    if status == 503:
        response.headers["Retry-After"] = "1"
    return response


def refused(status: int, message: str) -> web.Response:
    """For what is wrong before there is any SQL."""
    return failure(status, Condition.UNKNOWN_ERROR.code, Condition.UNKNOWN_ERROR.sqlstate, message)


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except MillraceError as error:
        condition = error.condition
        return failure(status_of(error), condition.code, condition.sqlstate, str(error))
    except web.HTTPRequestEntityTooLarge:
        return refused(413, f"a request has at most {REQUEST_BYTES_MAX} bytes")
    except web.HTTPException as error:
        response = refused(error.status, error.reason)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except (ValueError, RecursionError, web.RequestPayloadError) as error:  # msgspec's errors are ValueErrors
        return refused(400, str(error))
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        return refused(500, "internal error; see the log")
