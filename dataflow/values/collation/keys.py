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

from dataflow.values.collation.character_sets import byte_weights
from dataflow.values.collation.names import BY_NAME, UNICODE, canonical, charset_of
from dataflow.values.collation.weights import Tailored, Weights, weights
from dataflow.values.long_values import LONG, weigh, windows
from dataflow.values.short_cache import kept_if_short

Key = Callable[[str], bytes]
TABLES_OF = {
    "0900_ai_ci": "uca_1400", "general_ci": "general", "tolower_ci": "general", "chinese_ci": "general", "unicode_ci": "unicode", "unicode_520_ci": "unicode_520",
}  # fmt: skip
"""Of the orders of Unicode's character sets that are not a language's."""
TABLES = frozenset(TABLES_OF.values())
_LOW_SPACE = "\ufffe"
"""In the place of a space before something lower; no text has this character."""
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
    source = _source(table)
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


def _source(table: str) -> Weights | Tailored:
    return weights(table) if table in TABLES else Tailored(table)


def _ascii_table(encode: Callable[[str], bytes]) -> tuple[bytes, bytes] | None:
    """The translation of ASCII characters and those to delete; None if some have several weights."""
    keys = [encode(character) for character in _ASCII]
    if any(len(key) > 1 for key in keys):
        return None
    table = b"".join(key or b"\0" for key in keys) + bytes(128)
    return table, bytes(point for point, key in enumerate(keys) if not key)


def _weighed(text: str) -> str:
    if len(text) > LONG:
        weigh(len(text))
    return text


def _joined(characters: _Characters, text: str) -> bytes:
    if len(text) <= LONG:
        return b"".join([characters[character] for character in text])
    return b"".join([b"".join([characters[character] for character in part]) for part in windows(text)])


def _plain(encode: Callable[[str], bytes], units: tuple[str, ...]) -> Key:
    """The keys of a text's characters, side by side."""
    characters = _Characters(encode)
    table = None if units else _ascii_table(encode)
    if units:
        split = re.compile("|".join(map(re.escape, units)) + "|.", re.DOTALL).findall
        return lambda text: b"".join([characters[unit] for unit in split(_weighed(text))])
    if table is None:
        return lambda text: _joined(characters, _weighed(text))
    translation, ignored = table

    def plain(text: str) -> bytes:
        if len(text) > LONG:
            weigh(len(text))
        if text.isascii():
            return text.encode().translate(translation, ignored)
        return _joined(characters, text)

    return plain


def _single_level(table: str, pads: bool) -> Collating:
    encode, number = _primary(table, pads)
    units = _source(table).units
    plain = _plain(encode, units)
    begun = _begun(units)
    if not pads:
        return Collating(plain, plain, lambda text: plain(begun(text)))
    space, mark, low = bytes((number,)), bytes((number - 1,)), bytes((number - 2,))
    control = re.compile(b"[\x00-" + re.escape(bytes((number - 3,))) + b"]")
    run = re.compile(re.escape(space) + b"+(?=[\x00-" + re.escape(bytes((number - 3,))) + b"])")
    printable = all(not character.isprintable() for character in _ASCII if encode(character) and encode(character) < low)

    def start(text: str) -> bytes:
        key = plain(text).rstrip(space)
        if not (printable and text.isascii() and text.isprintable()) and control.search(key):
            return run.sub(lambda spaces: low * len(spaces[0]), key)
        return key

    return Collating(lambda text: start(text) + mark, plain, lambda text: start(begun(text)))


def _begun(units: tuple[str, ...]) -> Callable[[str], str]:
    """Cuts from the end of a text what could be the beginning of several characters that count as one."""
    starts = sorted({unit[:size] for unit in units for size in range(1, len(unit))}, key=len, reverse=True)
    if not starts:
        return lambda text: text
    end = re.compile("(?:" + "|".join(map(re.escape, starts)) + ")+\\Z")
    return lambda text: end.sub("", text)


def _multi_level(levels: int) -> Collating:
    source = weights("uca_1400")
    first = _Characters(_primary("uca_1400")[0])

    def lower(level: int) -> _Characters:
        return _Characters(lambda character: b"".join(w.to_bytes(2, "big") for w in source.of(character)[level]))

    parts = [lower(level) for level in range(1, levels)]

    @kept_if_short(1024)
    def key(text: str) -> bytes:
        return b"\0\0".join(
            [_joined(first, _weighed(text))] + [_joined(part, text) for part in parts]
        )

    return Collating(key, key, lambda text: b"".join([first[character] for character in text]))


def _binary(text: str) -> bytes:
    return _weighed(text).encode("utf-8", "surrogateescape")


def _padded(plain: Key) -> Collating:
    """A key of bytes that are the characters' own: 0x1F begins what takes the place of 0x1F, low spaces and the mark."""
    escaped = re.compile(rb"\x1f| +(?=[\x00-\x1f])")

    def start(text: str) -> bytes:
        key = plain(text).rstrip(b" ")
        if text.isascii() and text.isprintable():
            return key
        return escaped.sub(lambda found: b"\x1f\x00" if found[0] == b"\x1f" else b"\x1f\x01" * len(found[0]), key)

    return Collating(lambda text: start(text) + b"\x1f\x02", plain, start)


def _by_bytes(weigh: Callable[[str], bytes], pads: bool) -> Collating:
    """A collation whose characters have bytes for weights; as in `_padded`, the one below the space's begins what pads."""
    plain = _plain(weigh, ())
    if not pads:
        return Collating(plain, plain, plain)
    space = weigh(" ")
    below = bytes((space[0] - 1,))
    lower = "".join(character for character in _ASCII if weigh(character) < space)
    equal = "".join(character for character in map(chr, range(256)) if weigh(character) == space)
    run = re.compile(f"[{re.escape(equal)}]+(?=[{re.escape(lower)}])")

    def escaped(character: str) -> bytes:
        return below + b"\x01" if character == _LOW_SPACE else weigh(character).replace(below, below + b"\0")

    join = _plain(escaped, ())

    def start(text: str) -> bytes:
        text = text.rstrip(equal)
        return join(text if text.isprintable() else run.sub(lambda spaces: _LOW_SPACE * len(spaces[0]), text))

    return Collating(lambda text: start(text) + below + b"\x02", plain, start)


def _own_weights(name: str) -> Callable[[str], bytes]:
    """The weights of a collation that is not Unicode's; of `_bin`, the bytes of its character set."""
    known = byte_weights(name)
    codec = charset_of(name).codec
    return lambda character: known.get(character) or character.encode(codec, "millrace_utf8")


@cache
def _collating(name: str) -> Collating:
    """Language variants of UCA 9.0.0 order like the root they extend."""
    if name not in BY_NAME:
        return _collating(canonical(name))
    pads = BY_NAME[name].pads
    charset = BY_NAME[name].charset
    order = name.removeprefix(charset + "_").replace("nopad_", "")
    if name == "binary" or (order.endswith("bin") and charset in UNICODE):
        return _padded(_binary) if pads else Collating(_binary, _binary, _binary)
    if charset not in UNICODE:
        return _by_bytes(_own_weights(name.replace("nopad_", "")), pads)
    match order:
        case "0900_as_ci":
            return _multi_level(2)
        case "0900_as_cs":
            return _multi_level(3)
    return _single_level(TABLES_OF.get(order, order), pads)


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


def weight_string(name: str) -> Key:
    """What WEIGHT_STRING shows of a text."""
    collation = BY_NAME[name if name in BY_NAME else canonical(name)]
    if collation.charset not in UNICODE:
        return _collating(name).characters
    order = collation.name.removeprefix(collation.charset + "_").replace("nopad_", "")
    if order.endswith("bin"):
        width = 2 if collation.charset in ("utf8mb3", "ucs2") else 3
        return lambda text: b"".join([ord(character).to_bytes(width, "big") for character in text])
    levels = {"0900_as_ci": 2, "0900_as_cs": 3}.get(order, 1)
    source = _source("uca_1400" if levels > 1 else TABLES_OF.get(order, order))
    split = re.compile("|".join(map(re.escape, source.units)) + "|." if source.units else ".", re.DOTALL).findall

    def show(text: str) -> bytes:
        found = [source.of(unit) for unit in split(text)]
        return b"\0\0".join([b"".join([w.to_bytes(2, "big") for each in found for w in each[n]]) for n in range(levels)])

    return show


def is_case_sensitive(name: str) -> bool:
    return name == "binary" or name.endswith(("_bin", "_cs"))
