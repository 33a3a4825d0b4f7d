"""JSON functions that build and change documents.

A change at a path that finds nothing changes nothing, except that SET and INSERT add a member
to an object and a cell to an array that exist. SQL NULL as a document or a path gives NULL;
as a value it is JSON null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression
from dataflow.functions.json_paths import ArrayCell, JsonPath, Member, Place, find_one, parse_path
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.documents import Json, children, dumps, loads
from dataflow.values.result_limits import total
from dataflow.values.types import JSON, SqlType

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Change = Callable[[Json, JsonPath, Json], Json]


def _value(text: str | None) -> Json:
    return None if text is None else loads(text)


@function("json_array", rest=Domain.JSON_VALUE, nulls=True, result=JSON, size=total)
def json_array(*values: str | None) -> str:
    return f"[{', '.join(['null' if value is None else value for value in values])}]"


def _pairs_after(name: str, before: int) -> Callable[[tuple[Expression, ...]], SqlType]:
    """JSON, once the arguments after the first ones are found to come in pairs."""

    def infer(arguments: tuple[Expression, ...]) -> SqlType:
        if (len(arguments) - before) % 2:
            raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
        return JSON

    return infer


def _json_object(*items: str | None) -> str:
    keys, values = items[::2], items[1::2]
    if None in keys:
        raise InvalidStatement(Condition.JSON_NULL_KEY)
    return dumps({str(key): _value(value) for key, value in zip(keys, values)})


@special("json_object", least=0, most=None, result=_pairs_after("json_object", 0), grows=True)
def json_object(emitter: Emitter, node: Call) -> Fragment:
    domains = (Domain.TEXT, Domain.JSON_VALUE)
    fragments = [emitter.convert(argument, domains[at % 2]) for at, argument in enumerate(node.arguments)]
    return emitter.apply(emitter.bounded(node, _json_object, total), fragments, nulls=True)


@function(
    "named members",
    arguments=(Domain.INTEGER, Domain.ANY),
    nulls=True,
    result=JSON,
    deterministic=False,  # so that no view has to keep what cannot be computed
)
def named_members(unnamed: int | None, document: str | None) -> str | None:
    """What JSON_OBJECTAGG has made of members of which so many have no name."""
    if unnamed:
        raise InvalidStatement(Condition.JSON_NULL_KEY)
    return document


def _put(document: Json, place: Place, value: Json) -> Json:
    """`document` with `value` at an existing or new place; changes it in place."""
    if not place:
        return value
    parent = document
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = value
    return document


def _add(document: Json, path: JsonPath, value: Json) -> Json:
    """Adds what the last leg names to its parent, if that exists."""
    found = find_one(document, JsonPath(path.legs[:-1]))
    if found is None:
        return document
    place, parent = found
    leg = path.legs[-1]
    if isinstance(leg, Member):
        if isinstance(parent, dict):
            parent[str(leg.key)] = value
        return document
    assert isinstance(leg, ArrayCell)
    if isinstance(parent, list):
        parent.insert(max(leg.within(len(parent)), 0), value)
        return document
    wrapped = [parent]
    wrapped.insert(max(leg.within(1), 0), value)
    return _put(document, place, wrapped)


def _replace(document: Json, path: JsonPath, value: Json) -> Json:
    found = find_one(document, path)
    return document if found is None else _put(document, found[0], value)


def _insert(document: Json, path: JsonPath, value: Json) -> Json:
    return document if find_one(document, path) else _add(document, path, value)


def _set(document: Json, path: JsonPath, value: Json) -> Json:
    found = find_one(document, path)
    return _add(document, path, value) if found is None else _put(document, found[0], value)


def _append(document: Json, path: JsonPath, value: Json) -> Json:
    found = find_one(document, path)
    if found is None:
        return document
    place, target = found
    if isinstance(target, list):
        target.append(value)
        return document
    return _put(document, place, [target, value])


def _insert_cell(document: Json, path: JsonPath, value: Json) -> Json:
    if not path.legs or not isinstance(path.legs[-1], ArrayCell):
        raise InvalidStatement(Condition.JSON_PATH_NO_CELL)
    found = find_one(document, JsonPath(path.legs[:-1]))
    if found is not None and isinstance(found[1], list):
        # Counted from the end, a new cell goes before the one that is named.
        found[1].insert(max(path.legs[-1].within(len(found[1])), 0), value)
    return document


def _plain(path: str) -> JsonPath:
    parsed = parse_path(path)
    if not parsed.is_plain:
        raise InvalidStatement(Condition.JSON_PATH_WILDCARD)
    return parsed


def _register(name: str, change: Change) -> None:
    def apply(document: str | None, *pairs: str | None) -> str | None:
        if document is None or None in pairs[::2]:
            return None
        result = loads(document)
        for path, value in zip(pairs[::2], pairs[1::2]):
            result = change(result, _plain(str(path)), _value(value))
        return dumps(result)

    @special(name, least=3, most=None, result=_pairs_after(name, 1), grows=True)
    def emit(emitter: Emitter, node: Call) -> Fragment:
        domains = [Domain.JSON] + [Domain.TEXT, Domain.JSON_VALUE] * (len(node.arguments) // 2)
        fragments = [emitter.convert(argument, domain) for argument, domain in zip(node.arguments, domains)]
        return emitter.apply(emitter.bounded(node, apply, lambda document, *pairs: total(*pairs[1::2])), fragments, nulls=True)


_register("json_set", _set)
_register("json_insert", _insert)
_register("json_replace", _replace)
_register("json_array_append", _append)
_register("json_array_insert", _insert_cell)


@function("json_remove", arguments=(Domain.JSON, Domain.TEXT), rest=Domain.TEXT, result=JSON)
def json_remove(document: str, *paths: str) -> str:
    value = loads(document)
    for path in map(_plain, paths):
        if not path.legs:
            raise InvalidStatement(Condition.JSON_PATH_ROOT)
        found = find_one(value, path)
        if found and found[0]:
            parent = value
            for step in found[0][:-1]:
                parent = parent[step]
            del parent[found[0][-1]]
    return dumps(value)


def merge_preserve(left: Json, right: Json) -> Json:
    if isinstance(left, dict) and isinstance(right, dict):
        merged = dict(left)
        for key, value in children(right):
            merged[key] = merge_preserve(left[key], value) if key in left else value
        return merged
    return (left if isinstance(left, list) else [left]) + (right if isinstance(right, list) else [right])


def merge_patch(left: Json, right: Json) -> Json:
    """RFC 7396: null removes."""
    if not isinstance(right, dict):
        return right
    merged = dict(left) if isinstance(left, dict) else {}
    for key, value in children(right):
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


@function(
    "json_merge_preserve", "json_merge", arguments=(Domain.JSON, Domain.JSON), rest=Domain.JSON, result=JSON,
    size=lambda *documents: 0,
)  # fmt: skip
def json_merge_preserve(*documents: str) -> str:
    result = loads(documents[0])
    for document in documents[1:]:
        result = merge_preserve(result, loads(document))
    return dumps(result)


@function(
    "json_merge_patch", arguments=(Domain.JSON, Domain.JSON), rest=Domain.JSON, nulls=True, result=JSON,
    size=lambda *documents: 0,
)  # fmt: skip
def json_merge_patch(*documents: str | None) -> str | None:
    """What comes before a document that is no object does not matter, not even NULL."""
    result = documents[0]
    for document in documents[1:]:
        if document is None or (result is None and document.startswith("{")):
            result = None
        elif result is None:
            result = document
        else:
            result = dumps(merge_patch(loads(result), loads(document)))
    return result

