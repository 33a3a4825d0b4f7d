"""JSON as MySQL keeps it: one normal text for each document.

The value of a JSON column is that text. Keys are ordered by length and then bytes, the last
of equal keys wins, and separators are ", " and ": ". Numbers with a point or an exponent are
doubles, others integers of 64 bits.

A document may have 60 MB: whatever goes through all of one breathes (`dataflow.breath`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from heapq import merge
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from math import isinf
from typing import Any, NoReturn

from dataflow.breath import breathe
from dataflow.values.long_values import WINDOW, windows
from dataflow.values.numerals import INT64_MIN, UINT64_MAX, format_double

INTEGER_DIGITS_MAX = 20
"""Of 64 bits, with a sign."""
NESTED_MAX = 100
"""Arrays and objects within each other."""
LONG_DOCUMENT = 1 << 19
"""A document of more characters is parsed by a slower parser, which breathes."""

Json = Any
"""None, bool, int, float, Decimal, str, list or dict."""


class NotJson(ValueError):
    """`reason` and `position` as MySQL words them."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


def _constant(name: str) -> NoReturn:
    raise NotJson("Invalid value.", 0)


class _TooBig(Exception):
    """A number that no double has room for."""


def _integer(digits: str) -> int | float:
    if len(digits) <= INTEGER_DIGITS_MAX and INT64_MIN <= (value := int(digits)) <= UINT64_MAX:
        return value
    return _double(digits)


def _double(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise _TooBig(digits)
    return value


def _ordered(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    return {key: found[key] for key in _in_order(found)}


def _in_order(keys: Collection[str]) -> Collection[str]:
    """Sorted; very many of them in parts, so that others have their turn."""
    breathe()
    if len(keys) <= WINDOW:
        return sorted(keys, key=_key_order)
    waiting, runs = list(keys), []
    for start in range(0, len(waiting), WINDOW):
        runs.append(sorted(waiting[start : start + WINDOW], key=_key_order))
        breathe()
    found = []
    for key in merge(*runs, key=_key_order):
        found.append(key)
        breathe()
    return found


def _key_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode("utf-8", "surrogatepass")
    return len(encoded), encoded


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_ordered, parse_int=_integer, parse_float=_double, parse_constant=_constant)


_DECODER = _decoder()


def _decode_long(text: str) -> Json:
    """With json's own parser in Python, which breathes before each value; what is nested too deep is a RecursionError."""
    level = 0

    def nested(parse: Callable[..., Any], place: int) -> Callable[..., Any]:
        """`parse` is given the scanner of its values at this place."""

        def parsed(*given: Any) -> Any:
            nonlocal level
            level += 1
            if level > NESTED_MAX:
                raise RecursionError
            scan = given[place]

            def breathing(text: str, at: int) -> Any:
                breathe()
                return scan(text, at)

            found = parse(*given[:place], breathing, *given[place + 1 :])
            level -= 1
            return found

        return parsed

    decoder: Any = _decoder()
    decoder.parse_array, decoder.parse_object = nested(JSONArray, 1), nested(JSONObject, 2)
    decoder.scan_once = py_make_scanner(decoder)
    return decoder.decode(text)


def loads(text: str) -> Json:
    """Parse; raises NotJson."""
    try:
        if len(text) > LONG_DOCUMENT:
            found = _decode_long(text)
        else:
            found = _DECODER.decode(text)
            if text.count("[") + text.count("{") > NESTED_MAX and _nesting(found) > NESTED_MAX:
                raise RecursionError
        if "\\u" in text:
            dumps(found).encode()
        return found
    except UnicodeEncodeError:
        raise NotJson("The surrogate pair in string is invalid.", text.find("\\u")) from None
    except json.JSONDecodeError as error:
        if not text.strip():
            raise NotJson("The document is empty.", 0) from None
        raise NotJson("Invalid value.", error.pos) from None
    except _TooBig as error:
        raise NotJson("Number too big to be stored in double.", text.find(error.args[0])) from None
    except RecursionError:
        raise NotJson("The JSON document exceeds the maximum depth.", 0) from None


def _nesting(value: Json) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_nesting, value.values() if isinstance(value, dict) else value), default=0)


def children(value: Json) -> Iterator[tuple[str | int, Json]]:
    """The members of an object and the cells of an array, with their names and numbers, and a breath after each."""
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for each in found:
        yield each
        breathe()


def dumps(value: Json) -> str:
    """The normal text of `value`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            text = format_double(value)
            return text if "." in text or "e" in text else text + ".0"
        case Decimal():
            return f"{value:f}"
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join([dumps(item) for _, item in children(value)])}]"
        case dict():
            return "{" + ", ".join([f"{_quoted(key)}: {dumps(value[key])}" for key in _in_order(value)]) + "}"
    raise AssertionError(f"no JSON for {type(value)}")


def _quoted(value: str) -> str:
    if len(value) <= WINDOW:
        return json.dumps(value, ensure_ascii=False)
    return f'"{"".join([json.dumps(each, ensure_ascii=False)[1:-1] for each in windows(value)])}"'


def normalise(text: str) -> str:
    return dumps(loads(text))


_RANKS = {type(None): 1, int: 2, float: 2, Decimal: 2, str: 3, dict: 4, list: 5, bool: 6}


def order_key(text: str) -> tuple[Any, ...]:
    """Compares documents as MySQL does: by type first (null, numbers, strings, objects, arrays, booleans)."""
    return _order(loads(text))


def _order(value: Json) -> tuple[Any, ...]:
    rank = _RANKS[type(value)]
    match value:
        case None:
            return (rank,)
        case str():
            return (rank, value.encode("utf-8", "surrogatepass"))
        case list():
            return (rank, tuple(_order(item) for _, item in children(value)))
        case dict():
            return (rank, len(value), tuple((key, _order(item)) for key, item in children(value)))
        case _:
            return (rank, value)
