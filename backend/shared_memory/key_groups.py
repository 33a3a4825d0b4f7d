"""The groups of keys that a worker shows of one view: see `key_group` for what they are good for.

Of a key of several columns that was asked for and is not there, mostly one part repeats, and the whole hardly ever does: a
user's vote for one more story. The second such key of a group has the group shown: one look into an index instead of
one for each key to come. In which column the keys of a group differ is decided by what was asked for, and again every
now and then; where no part repeats there are no groups. When memory is short, groups leave.

A group's members are those of the table as of the view's epoch, or more: `follow` adds what an epoch inserts, and nothing
is taken off. So a key that is no member has no rows, whatever was evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from backend.shared_memory.key_group import (
    encoded_members,
    group_name,
    group_of,
    has_member,
    is_possible_member,
    members_among,
    with_member,
)
from backend.shared_memory.shared_key import KeyNaming, SharedKey
from backend.shared_memory.writer import SharedViewWriter
from dataflow.expressions.source import Key, key_function
from dataflow.plan.key_tracing import table_columns
from dataflow.plan.node import Columns
from dataflow.runtime.engine import View
from dataflow.state.delta import Change
from dataflow.values.key_values import key_value
from dataflow.values.types import INTEGERS, Row, SqlType

KEYS_SEEN_MIN, KEYS_SEEN_MAX = 64, 4096
"""After so many keys it is decided how they are grouped; after so many, again."""
REPEATED_MIN = 2
"""So many keys that are asked for have to be of the same group, on average."""
MEMBERS_MAX = 4096
"""A larger group is not shown."""
GROUPS_MAX = 100_000


class GroupSource(Protocol):
    """Where members are found: see `persistence.table_source`."""

    def is_indexed(self, table: int, columns: Columns) -> bool: ...

    def members(self, table: int, columns: Columns, key: Any, column: int, members_max: int) -> list[int] | None: ...


@dataclass(frozen=True, slots=True)
class _Grouping:
    """Keys that differ in the column at `place`, which is `member` of the table; its `columns` are the others."""

    place: int
    columns: Columns
    member: int
    key_of: Callable[[Row], Key]
    """What a row of the table has in `columns`."""
    normal: tuple[Callable[[Any], Any], ...]

    def name_of(self, row: Row) -> bytes:
        """The name of the group that a row of the table is in."""
        key: Any = self.key_of(row)
        parts = (key,) if len(self.columns) == 1 else key
        return group_name([normal(part) for normal, part in zip(self.normal, parts)], self.place)


class KeyGroups:
    def __init__(self, view: View, naming: KeyNaming, source: GroupSource, writer: SharedViewWriter) -> None:
        self._naming = naming
        self._source = source
        self._writer = writer
        self.table, self._groupings = _groupings(view, source)
        self._columns = tuple(sorted(set(view.key)))
        self._chosen: _Grouping | None = None
        self._seen: list[SharedKey] = []
        self._count = 0
        self._asked: dict[bytes, bool] = {}
        """Groups of which a key was asked for; whether they are too large."""
        self._shown: dict[bytes, None] = {}

    def __bool__(self) -> bool:
        """Whether keys can be grouped at all."""
        return bool(self._groupings)

    @property
    def shown(self) -> tuple[Columns, int]:
        """The view's columns that the keys of a group are alike in, and how many groups are shown."""
        if self._chosen is None:
            return (), 0
        place = self._chosen.place
        return (*self._columns[:place], *self._columns[place + 1 :]), len(self._shown)

    @property
    def is_any(self) -> bool:
        """Whether a group is shown."""
        return bool(self._shown)

    def absent(self, names: Sequence[SharedKey]) -> set[int]:
        """The places of those of these keys that are known to have no rows.

        They were asked for, and are not shown: groups of them may be shown from now on.
        """
        self._choose(names)
        grouping, absent = self._chosen, set[int]()
        if grouping is None:
            return absent
        groups: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        for place, name in enumerate(names):
            found = group_of(name, grouping.place)
            if found is not None:
                groups.setdefault(found[0], []).append((place, found[1]))
        for parts, own in groups.items():
            group = group_name(parts, grouping.place)
            members = self._writer.payload(group)
            for place, _ in own:
                if members is not None:
                    break
                members = self._show(grouping, group, names[place])
            if members is not None:
                there = members_among(members, [member for _, member in own])
                absent.update([place for place, member in own if member not in there])
        return absent

    def follow(self, delta: Iterable[Change]) -> None:
        """These rows of the table have changed."""
        grouping = self._chosen
        if grouping is None or not self._shown:
            return
        for row, weight in delta:
            member: Any = row[grouping.member]
            if weight > 0 and member is not None and (name := grouping.name_of(row)) in self._shown:
                members = self._writer.payload(name)
                if members is None or not is_possible_member(member):
                    self._hide(name)
                elif not has_member(members, member):
                    self._put(name, with_member(members, member))

    def shrink(self) -> None:
        """Half of the groups leave, those first that came first."""
        for name in list(self._shown)[: (len(self._shown) + 1) // 2]:
            self._hide(name)

    def _choose(self, names: Sequence[SharedKey]) -> None:
        """Decide how keys are grouped, by the first of many that were asked for."""
        self._count += len(names)
        if len(self._seen) < KEYS_SEEN_MIN:
            self._seen += names
            if len(self._seen) >= KEYS_SEEN_MIN:
                best = min(self._groupings, key=self._different)
                self._group(best if self._different(best) * REPEATED_MIN <= len(self._seen) else None)
        elif self._count >= KEYS_SEEN_MAX:
            self._seen, self._count = [], 0

    def _different(self, grouping: _Grouping) -> int:
        """How many groups the keys that were seen would be in."""
        groups = [group_of(name, grouping.place) for name in self._seen]
        return len({place if group is None else group[0] for place, group in enumerate(groups)})

    def _group(self, grouping: _Grouping | None) -> None:
        if grouping is self._chosen:
            return
        for name in list(self._shown):
            self._hide(name)
        self._chosen = grouping
        self._asked.clear()
        self._writer.group(None if grouping is None else grouping.place)

    def _show(self, grouping: _Grouping, name: bytes, key: SharedKey) -> bytes | None:
        """The members of a group that is not shown, if it is from now on: if another of its keys was asked for before."""
        is_large = self._asked.get(name)
        if is_large is None:
            if len(self._asked) >= GROUPS_MAX:
                self._asked.clear()
            self._asked[name] = False
        if is_large is not False:
            return None
        parts: Any = self._naming.index_key(key)
        rest = (*parts[: grouping.place], *parts[grouping.place + 1 :])
        found = self._source.members(
            self.table, grouping.columns, rest[0] if len(rest) == 1 else rest, grouping.member, MEMBERS_MAX
        )
        if found is None or not all(map(is_possible_member, found)):
            self._asked[name] = True
            return None
        if len(self._shown) >= GROUPS_MAX:
            self.shrink()
        members = encoded_members(found)
        self._put(name, members)
        return members

    def _put(self, name: bytes, members: bytes) -> None:
        if self._writer.put(name, (), members):
            self._shown[name] = None
        else:
            self._shown.pop(name, None)

    def _hide(self, name: bytes) -> None:
        del self._shown[name]
        self._writer.remove(name)


def _groupings(view: View, source: GroupSource) -> tuple[int, list[_Grouping]]:
    """The view's table, and how the keys of the view can be grouped: an index has to find the others of a group."""
    found = table_columns(view.node, tuple(sorted(set(view.key))))
    if found is None or len(set(found[1])) < max(2, len(found[1])) or view.is_full or view.order:
        return -1, []
    base, columns = found
    every = [_grouping(place, columns, base.types) for place, column in enumerate(columns) if base.types[column].kind in INTEGERS]
    return base.table, [each for each in every if source.is_indexed(base.table, each.columns)]


def _grouping(place: int, columns: Columns, types: Sequence[SqlType]) -> _Grouping:
    others = (*columns[:place], *columns[place + 1 :])
    return _Grouping(place, others, columns[place], key_function(others, types), tuple(key_value(types[each]) for each in others))
