"""Key functions: bytes that are equal and ordered as the collation has the texts.

Every key is bytes, so it hashes, compares and can be part of a key on disk. ASCII texts are
one `bytes.translate`. So that they agree with all others, the weights of ASCII characters are
numbered from 2 up; any other weight is the number of the next lower ASCII one followed by
three bytes above 0x7F that hold the weight itself.

PAD SPACE compares texts as if spaces without end followed each: 'a' = 'a ', 'a\t' < 'a'. A key of such a collation
has no spaces at its end, but a mark for them, and two numbers for a space further in front: one below the mark where
the run of spaces is followed by something lower than a space, and one above it elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from dataflow.collation.names import BY_NAME, canonical
from dataflow.collation.weights import weights
from dataflow.short_cache import kept_if_short

Key = Callable[[str], bytes]
UNICODE_COLLATIONS = ("utf8mb3_", "utf8mb4_", "ucs2_unicode", "utf16_unicode", "utf32_unicode")
_ASCII = [chr(point) for point in range(128)]


@dataclass(frozen=True, slots=True)
class Collating:
    """What a collation makes of a text: see `collation_key`, `character_key` and `prefix_key`."""

    key: Key
    characters: Key
    start: Key


class _Characters(dict[str, bytes]):
    """The key of each character, computed when first needed."""

    def __init__(self, encode: Callable[[str], bytes]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, character: str) -> bytes:
        found = self[character] = self._encode(character)
        return found


def _primary(table: str, pads: bool = False) -> tuple[Callable[[str], bytes], int]:
    """The level-one key of a single character, and the number of a space; where it pads, two below are its own, too."""
    source = weights(table)
    ranked = sorted({weight for character in _ASCII for weight in source.of(character)[0]})
    (space,) = source.of(" ")[0]
    numbers = [2 + rank + (2 if pads and weight >= space else 0) for rank, weight in enumerate(ranked)]

    def encode(character: str) -> bytes:
        parts = []
        for weight in source.of(character)[0]:
            rank = bisect_right(ranked, weight)
            number = numbers[rank - 1] if rank else 1
            if rank and ranked[rank - 1] == weight:
                parts.append(bytes((number,)))
            else:
                parts.append(bytes((number, 0x80 | weight >> 14, 0x80 | weight >> 7 & 0x7F, 0x80 | weight & 0x7F)))
        return b"".join(parts)

    return encode, numbers[ranked.index(space)]


def _ascii_table(encode: Callable[[str], bytes]) -> tuple[bytes, bytes]:
    """The translation of ASCII characters and those to delete."""
    keys = [encode(character) for character in _ASCII]
    assert all(len(key) <= 1 for key in keys)
    table = b"".join(key or b"\0" for key in keys) + bytes(128)
    return table, bytes(point for point, key in enumerate(keys) if not key)


def _single_level(table: str, pads: bool) -> Collating:
    encode, number = _primary(table, pads)
    translation, ignored = _ascii_table(encode)
    characters = _Characters(encode)

    def plain(text: str) -> bytes:
        if text.isascii():
            return text.encode().translate(translation, ignored)
        return b"".join([characters[character] for character in text])

    if not pads:
        return Collating(plain, plain, plain)
    space, mark, low = bytes((number,)), bytes((number - 1,)), bytes((number - 2,))
    control = re.compile(b"[\x00-" + re.escape(bytes((number - 3,))) + b"]")
    run = re.compile(re.escape(space) + b"+(?=[\x00-" + re.escape(bytes((number - 3,))) + b"])")
    printable = all(not character.isprintable() for character in _ASCII if encode(character) and encode(character) < low)

    def start(text: str) -> bytes:
        key = plain(text).rstrip(space)
        if not (printable and text.isascii() and text.isprintable()) and control.search(key):
            return run.sub(lambda spaces: low * len(spaces[0]), key)
        return key

    return Collating(lambda text: start(text) + mark, plain, start)


def _multi_level(levels: int) -> Collating:
    source = weights("uca_1400")
    first = _Characters(_primary("uca_1400")[0])

    def lower(level: int) -> _Characters:
        return _Characters(lambda character: b"".join(w.to_bytes(2, "big") for w in source.of(character)[level]))

    parts = [lower(level) for level in range(1, levels)]

    @kept_if_short(1024)
    def key(text: str) -> bytes:
        return b"\0\0".join(
            [b"".join([first[character] for character in text])]
            + [b"".join([part[character] for character in text]) for part in parts]
        )

    return Collating(key, key, lambda text: b"".join([first[character] for character in text]))


def _binary(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _padded(plain: Key) -> Collating:
    """A key of bytes that are the characters' own: 0x1F begins what takes the place of 0x1F, low spaces and the mark."""
    escaped = re.compile(rb"\x1f| +(?=[\x00-\x1f])")

    def start(text: str) -> bytes:
        key = plain(text).rstrip(b" ")
        if text.isascii() and text.isprintable():
            return key
        return escaped.sub(lambda found: b"\x1f\x00" if found[0] == b"\x1f" else b"\x1f\x01" * len(found[0]), key)

    return Collating(lambda text: start(text) + b"\x1f\x02", plain, start)


@cache
def _collating(name: str) -> Collating:
    """Language variants order like the root they extend."""
    if name not in BY_NAME:
        return _collating(canonical(name))
    pads = BY_NAME[name].pads
    if name == "binary" or (name.endswith("_bin") and not pads):
        return Collating(_binary, _binary, _binary)
    if name.endswith("_bin"):
        return _padded(_binary)
    match name:
        case "utf8mb4_0900_ai_ci":
            return _single_level("uca_1400", pads)
        case "utf8mb4_0900_as_ci":
            return _multi_level(2)
        case "utf8mb4_0900_as_cs":
            return _multi_level(3)
        case "ascii_general_ci":
            return _padded(lambda text: _binary(text).upper())
        case "latin1_swedish_ci" | "latin1_german1_ci":
            return _single_level("swedish", pads)
        case "latin1_general_cs":
            return _padded(_binary)
        case "latin1_general_ci":
            return _single_level("latin", pads)
    if name.endswith(("_general_ci", "_tolower_ci")) or not name.startswith(UNICODE_COLLATIONS):
        return _single_level("general", pads)
    return _single_level("unicode_520" if name.endswith("_unicode_520_ci") else "unicode", pads)


def collation_key(name: str) -> Key:
    """The key function of a collation."""
    return _collating(name).key


collation_bytes = collation_key


def character_key(name: str) -> Key:
    """As `collation_key`, but trailing spaces count; for LIKE and searching inside texts."""
    return _collating(name).characters


def prefix_key(name: str) -> Key:
    """What the keys of all texts begin with that begin as a text does; spaces at its end don't count where they may be padding."""
    return _collating(name).start


def is_case_sensitive(name: str) -> bool:
    return name == "binary" or name.endswith(("_bin", "_cs"))
