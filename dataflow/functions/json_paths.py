"""JSON paths: `$.a`, `$[0]`, `$[last-1]`, `$[1 to 3]`, `$.*`, `$[*]`, `$**.x`, `$."a b"`.

A path finds values together with where they are, each place once and in document order. A
cell 0 (or last) of what is no array is the value itself, as if it were wrapped in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dataflow.breath import breathe
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.documents import Json, children
from dataflow.values.short_cache import kept_if_short

Place = tuple[str | int, ...]
"""Keys and positions from the root down."""


@dataclass(frozen=True, slots=True)
class Member:
    """`key` is None for `.*`."""

    key: str | None


@dataclass(frozen=True, slots=True)
class ArrayCell:
    """Position `index` from the start, or from the end."""

    index: int
    from_end: bool = False

    def within(self, length: int) -> int:
        """The position in an array of `length`; out of range if there is none."""
        return length - 1 - self.index if self.from_end else self.index


@dataclass(frozen=True, slots=True)
class Cells:
    """A range of cells; `[*]` has no bounds and wraps nothing."""

    first: ArrayCell | None
    last: ArrayCell | None


@dataclass(frozen=True, slots=True)
class Descendants:
    """`**`: the value and everything below it."""


Leg = Member | ArrayCell | Cells | Descendants


@dataclass(frozen=True, slots=True)
class JsonPath:
    legs: tuple[Leg, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it can find one value at most."""
        return all(isinstance(leg, ArrayCell) or (isinstance(leg, Member) and leg.key is not None) for leg in self.legs)


_SPACE = r"[ \t\n\r]*"
_INDEX = rf"(last)?{_SPACE}(?:(-)?{_SPACE}(\d+))?"
_MEMBER = re.compile(rf'{_SPACE}\.{_SPACE}(?:(\*)|([^\W\d][\w$]*|\$[\w$]*)|("(?:[^"\\]|\\.)*"))')
_STAR_CELL = re.compile(rf"{_SPACE}\[{_SPACE}\*{_SPACE}\]")
_CELL = re.compile(rf"{_SPACE}\[{_SPACE}{_INDEX}(?:[ \t\n\r]+to[ \t\n\r]+{_INDEX})?{_SPACE}\]")
_DESCENDANTS = re.compile(rf"{_SPACE}\*\*")


def _cell(last: str | None, minus: str | None, digits: str | None) -> ArrayCell | None:
    if digits and len(digits) > 10:
        return None  # MySQL has 32 bits for it
    if last:
        return ArrayCell(int(digits or 0), True) if bool(minus) == bool(digits) else None
    return ArrayCell(int(digits)) if digits and not minus else None


@kept_if_short(1024)
def parse_path(text: str) -> JsonPath:
    """Error 3143 where it is not one."""
    at = len(text) - len(text.lstrip(" \t\n\r"))
    if text[at : at + 1] != "$":
        raise InvalidStatement(Condition.INVALID_JSON_PATH, at + 1)
    at += 1
    end = len(text.rstrip(" \t\n\r"))
    legs: list[Leg] = []
    while at < end:
        leg, after = _leg(text, at)
        if leg is None or (isinstance(leg, Descendants) and (after >= end or text.startswith("*", after))):
            raise InvalidStatement(Condition.INVALID_JSON_PATH, at + 1)
        legs.append(leg)
        at = after
    return JsonPath(tuple(legs))


def _leg(text: str, at: int) -> tuple[Leg | None, int]:
    if match := _MEMBER.match(text, at):
        star, name, quoted = match.groups()
        if quoted is None:
            return Member(None if star else name), match.end()
        try:
            return Member(json.loads(quoted, strict=False)), match.end()
        except ValueError:
            return None, at
    if match := _STAR_CELL.match(text, at):
        return Cells(None, None), match.end()
    if match := _CELL.match(text, at):
        groups = match.groups()
        first = _cell(*groups[:3])
        if first is None or not any(groups[3:]):
            return first, match.end()
        last = _cell(*groups[3:])
        wrong_order = last is not None and first.from_end == last.from_end and (first.index > last.index) != first.from_end
        if last is None or (wrong_order and first.index != last.index):
            return None, at
        return Cells(first, last), match.end()
    if match := _DESCENDANTS.match(text, at):
        return Descendants(), match.end()
    return None, at


def find(document: Json, path: JsonPath) -> list[tuple[Place, Json]]:
    """Every match and its place."""
    found: list[tuple[Place, Json]] = [((), document)]
    for leg in path.legs:
        below: dict[Place, Json] = {}
        for place, value in found:
            for step, child in _step(value, leg):
                below.setdefault(place + step, child)
        found = list(below.items())
        if not found:
            break
    return found


def find_one(document: Json, path: JsonPath) -> tuple[Place, Json] | None:
    found = find(document, path)
    return found[0] if found else None


def _step(value: Json, leg: Leg) -> Iterator[tuple[Place, Json]]:
    match leg:
        case Member(key):
            if isinstance(value, dict):
                if key is None:
                    for name, child in children(value):
                        yield (name,), child
                elif key in value:
                    yield (key,), value[key]
        case ArrayCell():
            if not isinstance(value, list):
                if leg.index == 0:
                    yield (), value
            elif 0 <= (position := leg.within(len(value))) < len(value):
                yield (position,), value[position]
        case Cells(first, last):
            if isinstance(value, list):
                start = max(first.within(len(value)), 0) if first else 0
                stop = last.within(len(value)) + 1 if last else len(value)
                for position in range(start, min(stop, len(value))):
                    yield (position,), value[position]
                    breathe()
            elif first and last and max(first.within(1), 0) <= 0 <= last.within(1):
                yield (), value
        case Descendants():
            yield (), value
            for step, child in children(value):
                for deeper, found in _step(child, leg):
                    yield (step, *deeper), found


def written(place: Place) -> str:
    """The path that finds exactly `place`."""
    text = "$"
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[^\W\d][\w$]*", step):
            text += f".{step}"
        else:
            text += "." + json.dumps(step, ensure_ascii=False)
    return text
