"""Character sets and collations by the numbers and names that clients use.

Text inside is `str`, so a character set is only how a connection's bytes are read and
written. mysql-mimic's table knows the collations up to 250; the UCA 9.0 ones of MySQL 8 are
added here. `utf8` and `utf8mb3` are the same; MySQL 8 calls it utf8mb3.
"""

from __future__ import annotations

from dataclasses import dataclass

from mysql_mimic.charset import DEFAULT_COLLATIONS, CharacterSet, Collation

from dataflow.collation import names

BINARY_ID = 63
DEFAULT_ID = 255

_UCA_0900 = {
    256: "de_pb", 257: "is", 258: "lv", 259: "ro", 260: "sl", 261: "pl", 262: "et", 263: "es", 264: "sv",
    265: "tr", 266: "cs", 267: "da", 268: "lt", 269: "sk", 270: "es_trad", 271: "la", 273: "eo", 274: "hu",
    275: "hr", 277: "vi",
}  # fmt: skip

NOT_FOR_CLIENTS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Character sets in which a statement cannot be sent: its letters would not be single bytes."""


@dataclass(frozen=True, slots=True)
class Charset:
    name: str
    codec: str
    bytes_max: int
    default_collation: str
    default_collation_id: int


@dataclass(frozen=True, slots=True)
class CollationEntry:
    id: int
    name: str
    charset: Charset

    @property
    def is_default(self) -> bool:
        return self.charset.default_collation_id == self.id


def _build() -> tuple[dict[str, Charset], dict[int, CollationEntry]]:
    charsets: dict[str, Charset] = {}
    for known in CharacterSet:
        name = "utf8mb3" if known.name == "utf8" else known.name
        if name not in names.CHARSETS:
            continue
        default = DEFAULT_COLLATIONS[known]
        default_name, default_id = _collation_name(default.name), int(default)
        if name == "utf8mb4":
            default_name, default_id = "utf8mb4_0900_ai_ci", DEFAULT_ID
        inner = names.CHARSETS[name]
        charsets[name] = Charset(name, inner.codec, inner.bytes_max, default_name, default_id)
    collations: dict[int, CollationEntry] = {}
    for collation in Collation:
        name = "utf8mb3" if collation.charset.name == "utf8" else collation.charset.name
        if name in charsets:
            collations[int(collation)] = CollationEntry(
                int(collation), _collation_name(collation.name), charsets[name]
            )
    utf8mb4 = charsets["utf8mb4"]
    more = {number: f"utf8mb4_{language}_0900_ai_ci" for number, language in _UCA_0900.items()}
    more |= {
        278: "utf8mb4_0900_as_cs", 303: "utf8mb4_ja_0900_as_cs", 305: "utf8mb4_0900_as_ci",
        306: "utf8mb4_ru_0900_ai_ci", 308: "utf8mb4_zh_0900_as_cs", 309: "utf8mb4_0900_bin",
    }  # fmt: skip
    for number, name in more.items():
        collations[number] = CollationEntry(number, name, utf8mb4)
    return charsets, dict(sorted(collations.items()))


def _collation_name(name: str) -> str:
    return name.replace("utf8_", "utf8mb3_", 1) if name.startswith("utf8_") else name


CHARSETS, COLLATIONS = _build()
_BY_NAME = {entry.name: entry for entry in COLLATIONS.values()}


def charset_of(name: str) -> Charset | None:
    lowered = name.lower()
    return CHARSETS.get("utf8mb3" if lowered == "utf8" else lowered)


def collation_of(name: str) -> CollationEntry | None:
    return _BY_NAME.get(_collation_name(name.lower()))


def collation_by_id(number: int) -> CollationEntry:
    """What a client names in its handshake; MySQL takes its default for numbers it does not know."""
    return COLLATIONS.get(number, COLLATIONS[DEFAULT_ID])
