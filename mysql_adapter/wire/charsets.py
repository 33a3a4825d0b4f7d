"""Character sets and collations by the numbers and names that clients use.

Text inside is `str`, so a character set is only how a connection's bytes are read and
written. The languages of UCA 9.0, which order as their root does here, are added to the collations of
`dataflow.values.collation`. `utf8` and `utf8mb3` are the same; MySQL 8 calls it utf8mb3.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.values.collation import names

BINARY_ID = 63
DEFAULT_ID = 255

_UCA_0900 = {
    256: "de_pb", 257: "is", 258: "lv", 259: "ro", 260: "sl", 261: "pl", 262: "et", 263: "es", 264: "sv",
    265: "tr", 266: "cs", 267: "da", 268: "lt", 269: "sk", 270: "es_trad", 271: "la", 273: "eo", 274: "hu",
    275: "hr", 277: "vi",
}  # fmt: skip
_MORE = {number: f"utf8mb4_{language}_0900_ai_ci" for number, language in _UCA_0900.items()} | {
    303: "utf8mb4_ja_0900_as_cs", 306: "utf8mb4_ru_0900_ai_ci", 308: "utf8mb4_zh_0900_as_cs",
}  # fmt: skip

NOT_FOR_CLIENTS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Character sets in which a statement cannot be sent: its letters would not be single bytes."""


@dataclass(frozen=True, slots=True)
class ClientCharset:
    name: str
    codec: str
    bytes_max: int
    default_collation: str
    default_collation_id: int


@dataclass(frozen=True, slots=True)
class CollationEntry:
    id: int
    name: str
    charset: ClientCharset

    @property
    def is_default(self) -> bool:
        return self.charset.default_collation_id == self.id


CHARSETS = {
    each.name: ClientCharset(each.name, each.codec, each.bytes_max, each.default_collation, names.BY_NAME[each.default_collation].id)
    for each in names.CHARSETS.values()
}
COLLATIONS = {
    number: CollationEntry(number, name, CHARSETS[charset])
    for number, name, charset in sorted(
        [(each.id, each.name, each.charset) for each in names.COLLATIONS]
        + [(number, name, "utf8mb4") for number, name in _MORE.items()]
    )
}
_BY_NAME = {entry.name: entry for entry in COLLATIONS.values()}


def charset_of(name: str) -> ClientCharset | None:
    lowered = name.lower()
    return CHARSETS.get("utf8mb3" if lowered == "utf8" else lowered)


def collation_of(name: str) -> CollationEntry | None:
    lowered = name.lower()
    return _BY_NAME.get(lowered.replace("utf8_", "utf8mb3_", 1) if lowered.startswith("utf8_") else lowered)


def collation_by_id(number: int) -> CollationEntry:
    """What a client names in its handshake; MySQL takes its default for numbers it does not know."""
    return COLLATIONS.get(number, COLLATIONS[DEFAULT_ID])
