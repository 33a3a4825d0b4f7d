"""The collations we know by name and by the id that stands for them on the wire (MySQL 8's)."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import Condition, InvalidStatement


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


_LANGUAGES = {  # utf8mb4 ids of the language variants of unicode_ci; utf8mb3's are 32 less
    "icelandic": 225, "latvian": 226, "romanian": 227, "slovenian": 228, "polish": 229, "estonian": 230,
    "spanish": 231, "swedish": 232, "turkish": 233, "czech": 234, "danish": 235, "lithuanian": 236,
    "slovak": 237, "spanish2": 238, "roman": 239, "persian": 240, "esperanto": 241, "hungarian": 242,
    "sinhala": 243, "german2": 244, "croatian": 245, "vietnamese": 247,
}  # fmt: skip

_MAIN = (
    (8, "latin1_swedish_ci", "latin1", True, True),
    (47, "latin1_bin", "latin1", False, True),
    (48, "latin1_general_ci", "latin1", False, True),
    (49, "latin1_general_cs", "latin1", False, True),
    (5, "latin1_german1_ci", "latin1", False, True),
    (11, "ascii_general_ci", "ascii", True, True),
    (65, "ascii_bin", "ascii", False, True),
    (33, "utf8mb3_general_ci", "utf8mb3", True, True),
    (76, "utf8mb3_tolower_ci", "utf8mb3", False, True),
    (83, "utf8mb3_bin", "utf8mb3", False, True),
    (192, "utf8mb3_unicode_ci", "utf8mb3", False, True),
    (214, "utf8mb3_unicode_520_ci", "utf8mb3", False, True),
    (45, "utf8mb4_general_ci", "utf8mb4", False, True),
    (46, "utf8mb4_bin", "utf8mb4", False, True),
    (224, "utf8mb4_unicode_ci", "utf8mb4", False, True),
    (246, "utf8mb4_unicode_520_ci", "utf8mb4", False, True),
    (255, "utf8mb4_0900_ai_ci", "utf8mb4", True, False),
    (278, "utf8mb4_0900_as_cs", "utf8mb4", False, False),
    (305, "utf8mb4_0900_as_ci", "utf8mb4", False, False),
    (309, "utf8mb4_0900_bin", "utf8mb4", False, False),
    (63, "binary", "binary", True, False),
)

COLLATIONS = tuple(
    sorted(
        [Collation(*entry) for entry in _MAIN]
        + [Collation(id_, f"utf8mb4_{name}_ci", "utf8mb4", False, True, 8) for name, id_ in _LANGUAGES.items()]
        + [Collation(id_ - 32, f"utf8mb3_{name}_ci", "utf8mb3", False, True, 8) for name, id_ in _LANGUAGES.items()],
        key=lambda collation: collation.id,
    )
)
BY_ID = {collation.id: collation for collation in COLLATIONS}
BY_NAME = {collation.name: collation for collation in COLLATIONS}

CHARSETS = {
    charset.name: charset
    for charset in (
        Charset("ascii", "US ASCII", "ascii_general_ci", 1),
        Charset("binary", "Binary pseudo charset", "binary", 1),
        Charset("latin1", "cp1252 West European", "latin1_swedish_ci", 1),
        Charset("utf8mb3", "UTF-8 Unicode", "utf8mb3_general_ci", 3),
        Charset("utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4),
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
    nopad = lowered.replace("_nopad", "")
    if nopad in BY_NAME:
        return nopad
    raise InvalidStatement(Condition.UNKNOWN_COLLATION, name)


def collation(name: str) -> Collation:
    return BY_NAME.get(name) or BY_NAME[canonical(name)]
