"""JSON functions that ask about documents: values, types, containment, search.

Documents come and go as the normal text of `dataflow.values.documents`. That text does not keep apart
what MySQL's binary form does: a DECIMAL is a double, a date is a string.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dataflow.breath import breathe
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call
from dataflow.functions.json_paths import find, find_one, parse_path, written
from dataflow.functions.patterns import like_matcher
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.documents import Json, NotJson, children, dumps, loads
from dataflow.values.numerals import INT64_MAX
from dataflow.values.result_limits import TooLong, total
from dataflow.values.types import BIGINT, BLOBS, BOOLEAN, INT, JSON, STRINGS, Kind, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

JSON_TEXT = text(collation="utf8mb4_bin")


@function("json_extract", "->", arguments=(Domain.JSON, Domain.TEXT), rest=Domain.TEXT, result=JSON, limited=True)
def json_extract(document: str, *paths: str, bytes_max: int) -> str | None:
    """One value for one plain path; otherwise an array of all that is found."""
    parsed = [parse_path(path) for path in paths]
    value = loads(document)
    found = [match for path in parsed for _, match in find(value, path)]
    if not found:
        return None
    if len(parsed) == 1 and parsed[0].is_plain:
        return dumps(found[0])
    return _array(map(dumps, found), bytes_max)


def _array(documents: Iterable[str], length_max: int) -> str:
    """All of them in one array, each made only if there is room for those before it."""
    parts, length = [], 0
    for document in documents:
        parts.append(document)
        length += len(document)
        if length > length_max:
            raise TooLong
    return f"[{', '.join(parts)}]"


def unquoted(document: str) -> str:
    """The text in a JSON string; of anything else the JSON itself."""
    return str(json.loads(document)) if document.startswith('"') else document


def _unquote_text(value: str) -> str:
    if len(value) < 2 or not (value.startswith('"') and value.endswith('"')):
        return value
    try:
        read = loads(value)
    except NotJson as error:
        raise InvalidStatement(Condition.INVALID_JSON_ARGUMENT, 1, "json_unquote", error.reason, error.position) from None
    return str(read)


@special("json_unquote", least=1, most=1, result=JSON_TEXT)
def json_unquote(emitter: Emitter, node: Call) -> Fragment:
    is_json = node.arguments[0].type.kind is Kind.JSON
    fragment = emitter.convert(node.arguments[0], Domain.JSON if is_json else Domain.TEXT)
    return emitter.apply(unquoted if is_json else _unquote_text, [fragment])


@function("->>", arguments=(Domain.JSON, Domain.TEXT), result=JSON_TEXT, limited=True)
def extract_unquoted(document: str, path: str, bytes_max: int) -> str | None:
    found = json_extract(document, path, bytes_max=bytes_max)
    return None if found is None else unquoted(found)


@function("json_value", arguments=(Domain.JSON, Domain.TEXT), result=text(512, "utf8mb4_bin"))
def json_value(document: str, path: str) -> str | None:
    """A scalar as text; NULL for anything else. RETURNING is the planner's cast around it."""
    found = plain_path(path)(loads(document))
    if not found or found[0] is None or isinstance(found[0], dict | list):
        return None
    return unquoted(dumps(found[0]))


def plain_path(path: str) -> Callable[[Json], list[Json]]:
    """A path that may not contain wildcards; gives a list of one value or none."""
    parsed = parse_path(path)
    if not parsed.is_plain:
        raise InvalidStatement(Condition.JSON_PATH_WILDCARD)
    return lambda document: [value for _, value in find(document, parsed)]


def same(left: Json, right: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    breathe()
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def contains(target: Json, candidate: Json) -> bool:
    breathe()
    if isinstance(target, list):
        wanted = candidate if isinstance(candidate, list) else [candidate]
        return all(any(contains(item, each) for item in target) for each in wanted)
    if isinstance(target, dict) and isinstance(candidate, dict):
        return all(key in target and contains(target[key], value) for key, value in candidate.items())
    return same(target, candidate)


@function("json_contains", arguments=(Domain.JSON, Domain.JSON, Domain.TEXT), optional=1, result=BOOLEAN)
def json_contains(target: str, candidate: str, path: str = "$") -> int | None:
    found = plain_path(path)(loads(target))
    return int(contains(found[0], loads(candidate))) if found else None


def overlaps(left: Json, right: Json) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return any(key in right and same(value, right[key]) for key, value in left.items())
    if not isinstance(left, list) and not isinstance(right, list):
        return same(left, right)
    first = left if isinstance(left, list) else [left]
    second = right if isinstance(right, list) else [right]
    return any(same(one, other) for one in first for other in second)


@function("json_overlaps", arguments=(Domain.JSON, Domain.JSON), result=BOOLEAN)
def json_overlaps(left: str, right: str) -> int:
    return int(overlaps(loads(left), loads(right)))


@function("member_of", "member of", arguments=(Domain.JSON_VALUE, Domain.JSON), result=BOOLEAN)
def member_of(value: str, array: str) -> int:
    document = loads(array)
    members = document if isinstance(document, list) else [document]
    wanted = loads(value)
    return int(any(same(wanted, member) for member in members))


def wants_all(one_or_all: str, name: str) -> bool:
    if one_or_all.lower() not in ("one", "all"):
        raise InvalidStatement(Condition.JSON_ONE_OR_ALL, name)
    return one_or_all.lower() == "all"


@function(
    "json_contains_path", arguments=(Domain.JSON, Domain.TEXT, Domain.TEXT), rest=Domain.TEXT, result=BOOLEAN
)
def json_contains_path(document: str, one_or_all: str, *paths: str) -> int:
    every = wants_all(one_or_all, "json_contains_path")
    value = loads(document)
    found = (find_one(value, parsed) is not None for parsed in map(parse_path, paths))
    return int(all(found) if every else any(found))


@function("json_keys", arguments=(Domain.JSON, Domain.TEXT), optional=1, result=JSON)
def json_keys(document: str, path: str = "$") -> str | None:
    found = plain_path(path)(loads(document))
    return dumps(list(found[0])) if found and isinstance(found[0], dict) else None


@function("json_length", arguments=(Domain.JSON, Domain.TEXT), optional=1, result=BIGINT)
def json_length(document: str, path: str = "$") -> int | None:
    found = plain_path(path)(loads(document))
    if not found:
        return None
    return len(found[0]) if isinstance(found[0], dict | list) else 1


def depth(value: Json) -> int:
    return 1 + max((depth(child) for _, child in children(value)), default=0)


@function("json_depth", arguments=(Domain.JSON,), result=INT)
def json_depth(document: str) -> int:
    return depth(loads(document))


_TYPES = {dict: "OBJECT", list: "ARRAY", bool: "BOOLEAN", str: "STRING", float: "DOUBLE", type(None): "NULL"}


@function("json_type", arguments=(Domain.JSON,), result=text(16))
def json_type(document: str) -> str:
    value = loads(document)
    if isinstance(value, int) and not isinstance(value, bool):
        return "INTEGER" if value <= INT64_MAX else "UNSIGNED INTEGER"
    return _TYPES[type(value)]


def _is_valid(value: str) -> int:
    try:
        loads(value)
    except NotJson:
        return 0
    return 1


@special("json_valid", least=1, most=1, result=BOOLEAN)
def json_valid(emitter: Emitter, node: Call) -> Fragment:
    """Only text can be valid; a number is not even though its text would be."""
    kind = node.arguments[0].type.kind
    fragment = emitter.convert(node.arguments[0], Domain.TEXT)
    return emitter.apply(_is_valid if kind in STRINGS or kind in BLOBS or kind is Kind.NULL else lambda value: 0, [fragment])


@function("json_quote", arguments=(Domain.TEXT,), result=JSON_TEXT, size=total)
def json_quote(value: str) -> str:
    return dumps(value)


@function(
    "json_search", arguments=(Domain.JSON, Domain.TEXT, Domain.TEXT, Domain.TEXT), optional=1, rest=Domain.TEXT,
    nulls=True, result=JSON, limited=True,
)  # fmt: skip
def json_search(
    document: str | None, one_or_all: str | None, wanted: str | None, escape: str | None = None, *paths: str | None,
    bytes_max: int,
) -> str | None:
    """The paths of the strings that are LIKE `wanted`."""
    if document is None or one_or_all is None or wanted is None or None in paths:
        return None
    every = wants_all(one_or_all, "json_search")
    if escape is not None and len(escape) > 1:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "ESCAPE")
    matches = like_matcher(wanted, escape or "\\", JSON_TEXT.collation or "")
    value = loads(document)
    roots = [match for path in paths or ("$",) for match in find(value, parse_path(str(path)))]
    found: dict[str, None] = {}
    length = 0
    for place, root in roots:
        for below, string in strings_in(root):
            if matches(string):
                path = written((*place, *below))
                length += 0 if path in found else len(path)
                if length > bytes_max:
                    raise TooLong
                found.setdefault(path)
                if not every:
                    return dumps(path)
    if not found:
        return None
    return dumps(next(iter(found)) if len(found) == 1 else list(found))


def strings_in(value: Json, place: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        return [(place, value)]
    return [found for step, child in children(value) for found in strings_in(child, (*place, step))]


@function("json_pretty", arguments=(Domain.JSON,), result=JSON_TEXT, limited=True)
def json_pretty(document: str, bytes_max: int) -> str:
    value = loads(document)
    if len(document) + _indentation(value, 0) > bytes_max:
        raise TooLong
    return _pretty(value, "\n")


def _indentation(value: Json, level: int) -> int:
    """How many spaces and ends of lines it is written with, less those that the document has between its parts."""
    if not isinstance(value, dict | list) or not value:
        return 0
    own = (len(value) + 1) * (2 * level + 1) + len(value)
    return own + sum([_indentation(child, level + 1) for _, child in children(value) if isinstance(child, dict | list)])


def _pretty(value: Json, newline: str) -> str:
    inner = newline + "  "
    if isinstance(value, list) and value:
        return "[" + inner + ("," + inner).join([_pretty(item, inner) for _, item in children(value)]) + newline + "]"
    if isinstance(value, dict) and value:
        items = [f"{dumps(key)}: {_pretty(item, inner)}" for key, item in children(value)]
        return "{" + inner + ("," + inner).join(items) + newline + "}"
    return dumps(value)
