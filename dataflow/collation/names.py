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
    codec: str = "utf-8"
    """Python's name of it."""

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"


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

_UNICODE = {"ucs2": 128, "utf16": 101, "utf32": 160}
_OTHERS = (
    ("latin2", "ISO 8859-2 Central European", "latin2_general_ci", 9, 77, 1, "iso8859-2"),
    ("latin5", "ISO 8859-9 Turkish", "latin5_turkish_ci", 30, 78, 1, "iso8859-9"),
    ("latin7", "ISO 8859-13 Baltic", "latin7_general_ci", 41, 79, 1, "iso8859-13"),
    ("greek", "ISO 8859-7 Greek", "greek_general_ci", 25, 70, 1, "iso8859-7"),
    ("hebrew", "ISO 8859-8 Hebrew", "hebrew_general_ci", 16, 71, 1, "iso8859-8"),
    ("koi8r", "KOI8-R Relcom Russian", "koi8r_general_ci", 7, 74, 1, "koi8-r"),
    ("koi8u", "KOI8-U Ukrainian", "koi8u_general_ci", 22, 75, 1, "koi8-u"),
    ("cp850", "DOS West European", "cp850_general_ci", 4, 80, 1, "cp850"),
    ("cp852", "DOS Central European", "cp852_general_ci", 40, 81, 1, "cp852"),
    ("cp866", "DOS Russian", "cp866_general_ci", 36, 68, 1, "cp866"),
    ("cp1250", "Windows Central European", "cp1250_general_ci", 26, 66, 1, "cp1250"),
    ("cp1251", "Windows Cyrillic", "cp1251_general_ci", 51, 50, 1, "cp1251"),
    ("cp1256", "Windows Arabic", "cp1256_general_ci", 57, 67, 1, "cp1256"),
    ("cp1257", "Windows Baltic", "cp1257_general_ci", 59, 58, 1, "cp1257"),
    ("macroman", "Mac West European", "macroman_general_ci", 39, 53, 1, "mac-roman"),
    ("macce", "Mac Central European", "macce_general_ci", 38, 43, 1, "mac-latin2"),
    ("tis620", "TIS620 Thai", "tis620_thai_ci", 18, 89, 1, "tis-620"),
    ("cp932", "SJIS for Windows Japanese", "cp932_japanese_ci", 95, 96, 2, "cp932"),
    ("sjis", "Shift-JIS Japanese", "sjis_japanese_ci", 13, 88, 2, "shift_jis"),
    ("ujis", "EUC-JP Japanese", "ujis_japanese_ci", 12, 91, 3, "euc_jp"),
    ("eucjpms", "UJIS for Windows Japanese", "eucjpms_japanese_ci", 97, 98, 3, "euc_jp"),
    ("euckr", "EUC-KR Korean", "euckr_korean_ci", 19, 85, 2, "euc_kr"),
    ("gb2312", "GB2312 Simplified Chinese", "gb2312_chinese_ci", 24, 86, 2, "gb2312"),
    ("gbk", "GBK Simplified Chinese", "gbk_chinese_ci", 28, 87, 2, "gbk"),
    ("gb18030", "China National Standard GB18030", "gb18030_chinese_ci", 248, 249, 4, "gb18030"),
    ("big5", "Big5 Traditional Chinese", "big5_chinese_ci", 1, 84, 2, "big5"),
    ("ucs2", "UCS-2 Unicode", "ucs2_general_ci", 35, 90, 2, "utf-16-be"),
    ("utf16", "UTF-16 Unicode", "utf16_general_ci", 54, 55, 4, "utf-16-be"),
    ("utf16le", "UTF-16LE Unicode", "utf16le_general_ci", 56, 62, 4, "utf-16-le"),
    ("utf32", "UTF-32 Unicode", "utf32_general_ci", 60, 61, 4, "utf-32-be"),
)
"""Name, description, default collation, its id and that of `_bin`, bytes of a character, codec.

Their collations compare as utf8mb4_general_ci does, which has the same letters but not always the same order.
"""

COLLATIONS = tuple(
    sorted(
        [Collation(*entry) for entry in _MAIN]
        + [Collation(id_, name, charset, True, True) for charset, _, name, id_, _, _, _ in _OTHERS]
        + [Collation(id_, f"{charset}_bin", charset, False, True) for charset, _, _, _, id_, _, _ in _OTHERS]
        + [Collation(id_, f"{charset}_unicode_ci", charset, False, True, 8) for charset, id_ in _UNICODE.items()]
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
        Charset("ascii", "US ASCII", "ascii_general_ci", 1, "ascii"),
        Charset("binary", "Binary pseudo charset", "binary", 1),
        Charset("latin1", "cp1252 West European", "latin1_swedish_ci", 1, "cp1252"),
        Charset("utf8mb3", "UTF-8 Unicode", "utf8mb3_general_ci", 3),
        Charset("utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4),
        *(Charset(name, description, default, width, codec) for name, description, default, _, _, width, codec in _OTHERS),
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


def charset_of(collation_name: str | None) -> Charset:
    """The character set of texts with a collation; utf8mb4 where none is known."""
    return CHARSETS["utf8mb4"] if collation_name is None else CHARSETS[collation(collation_name).charset]
