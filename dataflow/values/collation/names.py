"""The collations we know by name and by the id that stands for them on the wire (MySQL 8's)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.collation import character_sets


@dataclass(frozen=True, slots=True)
class Collation:
    """`is_default` of its character set; `pads` if trailing spaces do not count (PAD SPACE)."""

    id: int
    name: str
    charset: str
    is_default: bool
    pads: bool
    sort_length: int = 1


@dataclass(frozen=True, slots=True)
class Charset:
    name: str
    description: str
    default_collation: str
    bytes_max: int
    codec: str = "utf-8"
    """Python's name of it."""

    @property
    def bytes_min(self) -> int:
        """Of a character."""
        return {"utf-16-be": 2, "utf-16-le": 2, "utf-32-be": 4}.get(self.codec, 1)

    @property
    def point_max(self) -> int:
        """The last character that it has, if it is one of Unicode's."""
        return 0xFFFF if self.name in ("utf8mb3", "ucs2") else 0x10FFFF

    def read(self, data: bytes) -> tuple[str, int]:
        """The text of some bytes, a question mark for each that is none, and where the first of those is, or -1."""
        data = bytes(-len(data) % self.bytes_min) + data
        try:
            text = data.decode(self.codec)
        except UnicodeDecodeError as error:
            return self.fit(data.decode(self.codec, "millrace_marks"), 4)[0], error.start
        found, bad = self.fit(text, 4)
        return found, bad if bad < 0 else len(text[:bad].encode(self.codec))

    def fit(self, text: str, marks: int = 1) -> tuple[str, int]:
        """`text` with question marks for what the character set lacks, and where the first of those is, or -1."""
        if text.isascii():
            return text, -1
        try:
            text.encode(self.codec)
            bad = -1
        except UnicodeEncodeError as error:
            bad = error.start
            text = text.encode(self.codec, "replace").decode(self.codec)
        if self.point_max < 0x10FFFF and max(text) > "\uffff":
            position = next(at for at, character in enumerate(text) if character > "\uffff")
            bad = position if bad < 0 else min(bad, position)
            text = "".join(["?" * marks if character > "\uffff" else character for character in text])
        return text, bad

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"


UNICODE = frozenset({"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets that have all of Unicode, but for what is beyond their bytes."""
_OF_MYSQL_ALONE = (
    (248, "gb18030_chinese_ci", "gb18030", True, True, 2),
    (249, "gb18030_bin", "gb18030", False, True, 1),
    (250, "gb18030_unicode_520_ci", "gb18030", False, True, 8),
    (255, "utf8mb4_0900_ai_ci", "utf8mb4", True, False, 0),
    (278, "utf8mb4_0900_as_cs", "utf8mb4", False, False, 0),
    (305, "utf8mb4_0900_as_ci", "utf8mb4", False, False, 0),
    (309, "utf8mb4_0900_bin", "utf8mb4", False, False, 1),
)
NOPAD_IDS = 1024
"""How far the ids of MariaDB's collations without padding are from those of the same order with it."""
_NAMES = character_sets.names()

COLLATIONS = tuple(
    sorted(
        [Collation(*entry) for entry in _OF_MYSQL_ALONE]
        + [
            Collation(id_, name, charset, is_default and charset != "utf8mb4", name != "binary", length)
            for id_, name, charset, is_default, length in _NAMES["collations"]
        ],
        key=lambda collation: collation.id,
    )
)
_NOPAD = (
    Collation(each.id + NOPAD_IDS, re.sub("_(ci|cs|bin)$", r"_nopad_\1", each.name), each.charset, False, False, each.sort_length)
    for each in COLLATIONS
    if each.pads
)
"""MariaDB's: read in its dumps, but not listed, as MySQL has none."""
BY_ID = {collation.id: collation for collation in COLLATIONS}
BY_NAME = {collation.name: collation for collation in (*COLLATIONS, *_NOPAD)}

CHARSETS = {
    charset.name: charset
    for charset in (
        *(
            Charset(name, description, "utf8mb4_0900_ai_ci" if name == "utf8mb4" else default, most, character_sets.codec_name(name))
            for name, description, default, most in _NAMES["charsets"]
        ),
        Charset("gb18030", "China National Standard GB18030", "gb18030_chinese_ci", 4, "gb18030"),
    )
}


def canonical(name: str) -> str:
    """The name in our table for any spelling MySQL or MariaDB dumps use; 1273 if there is none."""
    lowered = name.lower()
    if lowered.startswith("utf8_"):
        lowered = "utf8mb3_" + lowered[5:]
    if lowered in BY_NAME:
        return lowered
    if lowered.startswith("utf8mb4_") and lowered.endswith(("_0900_ai_ci", "_0900_as_cs")):
        return "utf8mb4" + lowered[-11:]
    if "uca1400" in lowered:
        return "utf8mb4_0900_" + lowered[-5:].replace("ai_cs", "as_cs")
    raise InvalidStatement(Condition.UNKNOWN_COLLATION, name)


def collation(name: str) -> Collation:
    return BY_NAME.get(name) or BY_NAME[canonical(name)]


def charset_of(collation_name: str | None) -> Charset:
    """The character set of texts with a collation; utf8mb4 where none is known."""
    return CHARSETS["utf8mb4"] if collation_name is None else CHARSETS[collation(collation_name).charset]
