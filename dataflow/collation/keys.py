"""Key functions: bytes that are equal and ordered as the collation has the texts.

Every key is bytes, so it hashes, compares and can be part of a key on disk. ASCII texts are
one `bytes.translate`. So that they agree with all others, the weights of ASCII characters are
numbered from 2 up; any other weight is the number of the next lower ASCII one followed by
three bytes above 0x7F that hold the weight itself.

With PAD SPACE trailing spaces are cut. Texts that differ only by a control character after
the point where one ends are ordered by length, where MySQL compares it with a space.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache

from dataflow.collation.names import BY_NAME, canonical
from dataflow.collation.weights import weights
from dataflow.short_cache import kept_if_short

Key = Callable[[str], bytes]
UNICODE_COLLATIONS = ("utf8mb3_", "utf8mb4_", "ucs2_unicode", "utf16_unicode", "utf32_unicode")
_ASCII = [chr(point) for point in range(128)]


class _Characters(dict[str, bytes]):
    """The key of each character, computed when first needed."""

    def __init__(self, encode: Callable[[str], bytes]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, character: str) -> bytes:
        found = self[character] = self._encode(character)
        return found


def _primary(table: str) -> Callable[[str], bytes]:
    """The level-one key of a single character."""
    source = weights(table)
    ranked = sorted({weight for character in _ASCII for weight in source.of(character)[0]})

    def encode(character: str) -> bytes:
        parts = []
        for weight in source.of(character)[0]:
            rank = bisect_left(ranked, weight)
            if rank < len(ranked) and ranked[rank] == weight:
                parts.append(bytes((rank + 2,)))
            else:
                parts.append(bytes((rank + 1, 0x80 | weight >> 14, 0x80 | weight >> 7 & 0x7F, 0x80 | weight & 0x7F)))
        return b"".join(parts)

    return encode


def _ascii_table(encode: Callable[[str], bytes]) -> tuple[bytes, bytes]:
    """The translation of ASCII characters and those to delete."""
    keys = [encode(character) for character in _ASCII]
    assert all(len(key) <= 1 for key in keys)
    table = b"".join(key or b"\0" for key in keys) + bytes(128)
    return table, bytes(point for point, key in enumerate(keys) if not key)


def _single_level(table: str, pads: bool) -> Key:
    encode = _primary(table)
    translation, ignored = _ascii_table(encode)
    characters = _Characters(encode)

    def padded(text: str) -> bytes:
        text = text.rstrip(" ")
        if text.isascii():
            return text.encode().translate(translation, ignored)
        return b"".join([characters[character] for character in text])

    def unpadded(text: str) -> bytes:
        if text.isascii():
            return text.encode().translate(translation, ignored)
        return b"".join([characters[character] for character in text])

    return padded if pads else unpadded


def _multi_level(levels: int) -> Key:
    source = weights("uca_1400")
    first = _Characters(_primary("uca_1400"))

    def lower(level: int) -> _Characters:
        return _Characters(lambda character: b"".join(w.to_bytes(2, "big") for w in source.of(character)[level]))

    parts = [lower(level) for level in range(1, levels)]

    @kept_if_short(1024)
    def key(text: str) -> bytes:
        return b"\0\0".join(
            [b"".join([first[character] for character in text])]
            + [b"".join([part[character] for character in text]) for part in parts]
        )

    return key


def _padded_binary(text: str) -> bytes:
    return text.rstrip(" ").encode("utf-8", "surrogateescape")


def _binary(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _upper_ascii(text: str) -> bytes:
    return text.rstrip(" ").encode("utf-8", "surrogateescape").upper()


@cache
def collation_key(name: str) -> Key:
    """The key function of a collation. Language variants order like the root they extend."""
    if name not in BY_NAME:
        return collation_key(canonical(name))
    pads = BY_NAME[name].pads
    if name in ("binary", "utf8mb4_0900_bin"):
        return _binary
    if name.endswith("_bin"):
        return _padded_binary
    match name:
        case "utf8mb4_0900_ai_ci":
            return _single_level("uca_1400", pads)
        case "utf8mb4_0900_as_ci":
            return _multi_level(2)
        case "utf8mb4_0900_as_cs":
            return _multi_level(3)
        case "ascii_general_ci":
            return _upper_ascii
        case "latin1_swedish_ci" | "latin1_german1_ci":
            return _single_level("swedish", pads)
        case "latin1_general_cs":
            return _padded_binary
        case "latin1_general_ci":
            return _single_level("latin", pads)
    if name.endswith(("_general_ci", "_tolower_ci")) or not name.startswith(UNICODE_COLLATIONS):
        return _single_level("general", pads)
    return _single_level("unicode_520" if name.endswith("_unicode_520_ci") else "unicode", pads)


collation_bytes = collation_key


@cache
def character_key(name: str) -> Key:
    """As `collation_key`, but trailing spaces count; for LIKE and searching inside texts."""
    if name not in BY_NAME:
        return character_key(canonical(name))
    if not BY_NAME[name].pads:
        return collation_key(name)
    if collation_key(name) in (_padded_binary,):
        return _binary
    if name == "ascii_general_ci":
        return lambda text: text.encode("utf-8", "surrogateescape").upper()
    plain = collation_key(name)
    space = plain(" a")[: -len(plain("a"))]
    trailing = re.compile(" +$")

    def key(text: str) -> bytes:
        found = trailing.search(text)
        return plain(text) + space * (len(found[0]) if found else 0)

    return key


def is_case_sensitive(name: str) -> bool:
    return name == "binary" or name.endswith(("_bin", "_cs"))
