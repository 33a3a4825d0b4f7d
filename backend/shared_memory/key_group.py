"""Groups of keys: how a view by several columns knows that a key has no rows without having been asked for it.

A group is all keys that are alike but in one column, an integer: the stories of a user, where the key is user and story.
Its entry in the view's file has its *members*: the numbers of that column in the table's rows, sorted, 8 bytes each. A key
that is not in the file, and whose group is there without it, has no rows. A member may have none either, because
its row was deleted or does not pass the view's filter: the worker is asked.

`GROUPED` in the file's header is 0, or 1 and the place of that column among the sorted columns of the key.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from backend.shared_memory.shared_key import SharedKey

NO_MEMBER = -(1 << 63)
"""Stands first in every group, so that no entry is empty."""
MEMBER_MAX = (1 << 63) - 1
MEMBERS_A_NUMBER = 16
"""Where there are more members than so many for each number, the numbers are looked for one by one."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


def group_of(name: SharedKey, place: int) -> tuple[tuple[Any, ...], int] | None:
    """What the keys of the group have in common that the key with this name is in, and which member the key is; None if it is in none."""
    if isinstance(name, int):
        return None
    parts = _decode(name)
    member = parts.pop(place)
    if type(member) is not int or not is_possible_member(member):
        return None
    return tuple(parts), member


def group_name(parts: Sequence[Any], place: int) -> bytes:
    """The name of the group whose keys have these parts in common. No key is called like this: none has a list in it."""
    return _encode((place, parts))


def is_possible_member(number: int) -> bool:
    return NO_MEMBER < number <= MEMBER_MAX


def is_group(name: SharedKey) -> bool:
    """Whether it is the name of a group, not of a key."""
    return not isinstance(name, int) and type(_decode(name)[-1]) is list


def encoded_members(members: Iterable[int]) -> bytes:
    numbers = sorted((NO_MEMBER, *members))
    return struct.pack(f"={len(numbers)}q", *numbers)


def members_among(members: bytes, numbers: Sequence[int]) -> set[int]:
    """Those of the numbers that are members."""
    every = memoryview(members).cast("q")
    if len(every) > MEMBERS_A_NUMBER * len(numbers):
        return {number for number in numbers if has_member(members, number)}
    return set(numbers).intersection(every)


def alike_names(parts: Sequence[int], place: int, numbers: Iterable[int]) -> list[SharedKey]:
    """The names of the keys that have these parts, and at `place` among them one of the numbers."""
    before, after = parts[:place], parts[place:]
    return [_encode((*before, number, *after)) for number in numbers]


def has_member(members: bytes, member: int) -> bool:
    numbers = memoryview(members).cast("q")
    place = bisect_left(numbers, member)
    return place < len(numbers) and numbers[place] == member


def with_member(members: bytes, member: int) -> bytes:
    """The members and this one."""
    numbers = memoryview(members).cast("q")
    place = bisect_left(numbers, member)
    if place < len(numbers) and numbers[place] == member:
        return members
    return b"%b%b%b" % (members[: 8 * place], member.to_bytes(8, "little", signed=True), members[8 * place :])
