"""Keys compare texts as MariaDB's collations do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.collation import BY_ID, CHARSETS, COLLATIONS, character_key, collation_key, prefix_key
from dataflow.values.collation.names import canonical
from tests.mariadb import MariaDB

THEIRS = {
    "utf8mb4_bin": "utf8mb4_bin",
    "utf8mb4_general_ci": "utf8mb4_general_ci",
    "utf8mb4_unicode_ci": "utf8mb4_unicode_ci",
    "utf8mb4_unicode_520_ci": "utf8mb4_unicode_520_ci",
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
    "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
    "utf8mb4_0900_bin": "utf8mb4_nopad_bin",
}
ALPHABET = "aAbBzZ09 -_.,éÉèêëàâäÄöÖüÜßñÑçÇøØåÅæÆœłŁıİşğ" "αΑβςσΣжЖяЯёЁ" "אבجد" "中日本語カかガ가힣" "ａＡ１ﬁ²½①" "\u0301\u0308\u200b" "😀😁🎉𝒜"


@pytest.fixture(scope="module")
def cursor(mariadb: MariaDB) -> Iterator[Any]:
    connection = mariadb.connect()
    yield connection.cursor()
    connection.close()


def texts(seed: int, count: int) -> list[str]:
    choose = random.Random(seed)
    found = ["", " ", "a", "a ", "A", "aa", "ab", "Straße", "STRASSE", "strasse "]
    found += ["".join(choose.choices(ALPHABET, k=choose.randint(1, 5))) for _ in range(count)]
    found += ["".join(choose.choices("abAB -_.9", k=choose.randint(1, 4))) for _ in range(count)]
    found += ["".join(choose.choices("a a \t\n\x01\x1f\0\u00a0\u2003é", k=choose.randint(1, 5))) for _ in range(count)]
    found += [chr(choose.choice((choose.randrange(0x20, 0xD800), choose.randrange(0xE000, 0x20000)))) for _ in range(count)]
    return found


@pytest.mark.parametrize("name", THEIRS)
def test_keys_compare_like_mariadbs(cursor: Any, name: str) -> None:
    key = collation_key(name)
    found = texts(1, 700)
    pairs = list(zip(found, random.Random(2).sample(found, len(found))))
    lefts = "SELECT " + ", ".join(["STRCMP(%s COLLATE " + THEIRS[name] + ", %s)"] * 50)
    wrong = []
    for start in range(0, len(pairs) - 49, 50):
        batch = pairs[start : start + 50]
        cursor.execute(lefts, [text for pair in batch for text in pair])
        for (left, right), expected in zip(batch, cursor.fetchone()):
            actual = (key(left) > key(right)) - (key(left) < key(right))
            if actual != int(expected):
                wrong.append((left, right, expected, actual))
    assert wrong == []


LETTERS = (
    "aAbBcChHlLdDzZžŽs S\t\n\x01\x1f ~!09éÉäÄßñøåÅæþıİşğčČćřđŁőЖжяЯабёαΑςσאבجก중中日本カかガ가힣亜ｱ。"
    + "".join(map(chr, range(0x100, 0x180)))
)  # fmt: skip
APART = ("binary", "gb18030_chinese_ci", "gb18030_bin", "gb18030_unicode_520_ci", "big5_chinese_ci", "eucjpms_japanese_ci", "eucjpms_bin")
"""MariaDB has not the first ones; of the others it has a few characters with other bytes than Python's codecs."""


@pytest.mark.parametrize(
    "collation",
    [each for each in COLLATIONS if each.name not in APART and "0900" not in each.name],
    ids=lambda collation: str(collation.name),
)
def test_every_character_sets_letters_are_ordered_like_mariadbs(cursor: Any, collation: Any) -> None:
    codec = CHARSETS[collation.charset].codec
    letters = [letter for letter in LETTERS if letter.encode(codec, "ignore").decode(codec, "ignore") == letter]
    choose = random.Random(collation.id)
    pairs = [["".join(choose.choices(letters, k=choose.randint(0, 6))) for _ in range(2)] for _ in range(50)]
    pairs = [[left, choose.choice((right, left + right, left[:-1] + right))] for left, right in pairs]
    theirs = collation.name
    if theirs.startswith(("u", "U")):
        theirs = theirs.replace("croatian", "croatian_mysql561")
    one = f"CONVERT(%s USING {collation.charset}) COLLATE {theirs}"
    cursor.execute("SELECT " + ", ".join([f"STRCMP({one}, {one})"] * 50), [text for pair in pairs for text in pair])
    key = collation_key(collation.name)
    found = [(key(left) > key(right)) - (key(left) < key(right)) for left, right in pairs]
    assert found == list(cursor.fetchone()), pairs


@pytest.mark.parametrize("collation", COLLATIONS, ids=lambda collation: str(collation.name))
def test_ascii_takes_the_same_keys_as_other_text(collation: Any) -> None:
    key = character_key(collation.name)
    alone, together = key("Hello, World_9 x"), key("Hello, World_9 xé")
    assert together.startswith(alone) or collation.name.endswith(("_as_cs", "_as_ci"))


def test_trailing_spaces_count_only_without_padding() -> None:
    for collation in COLLATIONS:
        key = collation_key(collation.name)
        assert (key("a") == key("a  ")) is collation.pads
        assert character_key(collation.name)("a") != character_key(collation.name)("a ")


@pytest.mark.parametrize("collation", COLLATIONS, ids=lambda collation: str(collation.name))
def test_keys_begin_with_those_of_their_texts_beginnings(collation: Any) -> None:
    key, start = collation_key(collation.name), prefix_key(collation.name)
    found = texts(3, 30)
    for left, right in zip(found, random.Random(4).sample(found, len(found))):
        assert key(left + right).startswith(start(left)), (left, right)


def test_default_collation_ignores_case_and_accents() -> None:
    key = collation_key("utf8mb4_0900_ai_ci")
    assert key("Straße") == key("STRASSE") and key("é") == key("E") and key("a") != key("b")
    assert sorted(["b", "ä", "a", "Z", "1", "-"], key=key) == ["-", "1", "ä", "a", "b", "Z"]


def test_wire_ids_are_mysqls() -> None:
    assert BY_ID[255].name == "utf8mb4_0900_ai_ci" and BY_ID[255].is_default
    assert {BY_ID[id_].name for id_ in (8, 33, 45, 46, 63, 224)} == {
        "latin1_swedish_ci", "utf8mb3_general_ci", "utf8mb4_general_ci", "utf8mb4_bin", "binary", "utf8mb4_unicode_ci",
    }  # fmt: skip
    assert len(BY_ID) == len(COLLATIONS)
    assert all(charset.default_collation in {collation.name for collation in COLLATIONS} for charset in CHARSETS.values())


def test_other_spellings_are_known_and_nonsense_is_refused() -> None:
    assert canonical("utf8_general_ci") == "utf8mb3_general_ci"
    assert canonical("UTF8MB4_DE_PB_0900_AI_CI") == "utf8mb4_0900_ai_ci"
    assert canonical("utf8mb4_uca1400_ai_ci") == "utf8mb4_0900_ai_ci"
    with pytest.raises(InvalidStatement) as raised:
        canonical("klingon_ci")
    assert raised.value.condition is Condition.UNKNOWN_COLLATION
