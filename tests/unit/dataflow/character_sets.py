"""Writes dataflow/values/collation/character_sets.dat from what MariaDB says of its character sets and collations.

Run it with `python -m tests.unit.dataflow.character_sets`. The file is a zip archive:

- `names.json`: the character sets and collations that MySQL 8.0 has, too.
- `charset/NAME`: the 256 characters of a character set of single bytes; U+FFFE where it has none.
- `weights/COLLATION`: of a collation of another character set than Unicode's, the WEIGHT_STRING of each character.
- `tailoring/LANGUAGE`: where a language differs from utf8mb4_unicode_ci, also in several characters that count as one.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import dataflow.values.collation
from tests.mariadb import MariaDB

OUTPUT = Path(dataflow.values.collation.__file__).parent / "character_sets.dat"
UNICODE = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32")
MULTIBYTE = {
    "big5": "big5", "cp932": "cp932", "eucjpms": "euc_jp", "euckr": "cp949", "gb2312": "gb2312", "gbk": "gbk",
    "sjis": "shift_jis", "ujis": "euc_jp",
}  # fmt: skip
UNLIKE = ("latin2_czech_cs", "cp1250_czech_cs")
"""Compared in four passes, which no weight of a character tells."""
POINT_MAX = 0x10000


def names(cursor: Any) -> dict[str, list[list[Any]]]:
    cursor.execute("SELECT character_set_name, description, default_collate_name, maxlen FROM information_schema.character_sets")
    charsets = [list(row) for row in cursor]
    cursor.execute("SELECT id, collation_name, character_set_name, is_default = 'Yes', sortlen FROM information_schema.collations WHERE id < 256")
    collations = [[row[0], row[1].replace("_mysql561", ""), row[2], bool(row[3]), row[4]] for row in cursor]
    return {"charsets": charsets, "collations": [each for each in collations if each[1] not in UNLIKE]}


def single_bytes(cursor: Any, charset: str) -> str:
    cursor.execute(f"SELECT v, CONVERT(CONVERT(v USING {charset}) USING utf8mb4) FROM bytes WHERE LENGTH(v) = 1 ORDER BY v")
    return "".join("\ufffe" if text is None or (text == "?" and byte != b"?") else text for byte, text in cursor)


def weights(cursor: Any, charset: str, collation: str) -> dict[str, str]:
    codec = MULTIBYTE.get(charset)
    cursor.execute(
        f"SELECT v, CONVERT(CONVERT(v USING {charset}) USING utf8mb4), HEX(WEIGHT_STRING(CONVERT(v USING {charset}) COLLATE {collation}))"
        f" FROM bytes WHERE LENGTH(v) <= {1 if codec is None else 3}"
    )
    found = {}
    for data, text, weight in cursor:
        if codec is not None:
            try:
                text = data.decode(codec)
            except UnicodeDecodeError:
                continue
        if text is not None and len(text) == 1 and (text != "?" or data == b"?"):
            found[text] = weight
    return found


def tailoring(cursor: Any, collation: str, base: dict[str, str]) -> dict[str, str]:
    cursor.execute(f"SELECT c, HEX(WEIGHT_STRING(c COLLATE {collation})) FROM points")
    own = dict(cursor)
    found = {text: weight for text, weight in own.items() if weight != base[text]}
    letters = [chr(point) for point in range(0x41, 0x7B) if chr(point).isalpha()]
    letters += [text for text in found if text not in letters and len(text) == 1]
    if len(letters) > 1000:  # Sinhala: its contractions are of its own letters
        letters = [text for text in letters if ord(text) < 0x3000]
    for pair, weight in asked(cursor, collation, ("".join(each) for each in product(letters, letters))):
        if weight != own[pair[0]] + own[pair[1]]:
            found[pair] = weight
    pairs = [text for text in found if len(text) == 2]
    for triple, weight in asked(cursor, collation, (pair + letter for pair, letter in product(pairs, letters))):
        if weight != found[triple[:2]] + own[triple[2]] and weight != own[triple[0]] + found.get(triple[1:], "-"):
            found[triple] = weight
    return found


def asked(cursor: Any, collation: str, texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    every = list(texts)
    for start in range(0, len(every), 500):
        some = every[start : start + 500]
        cursor.execute("SELECT " + ", ".join([f"HEX(WEIGHT_STRING(%s COLLATE {collation}))"] * len(some)), some)
        yield from zip(some, cursor.fetchone())


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder, MariaDB(Path(folder)) as server, server.connect() as connection,
        zipfile.ZipFile(OUTPUT, "w", zipfile.ZIP_DEFLATED) as archive,
    ):  # fmt: skip
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE w")
        cursor.execute("USE w")
        cursor.execute("CREATE TABLE points (c VARCHAR(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY) ENGINE=MyISAM")
        cursor.execute("CREATE TABLE bytes (v VARBINARY(3) PRIMARY KEY) ENGINE=MyISAM")
        points = [chr(point) for point in range(POINT_MAX) if not 0xD800 <= point < 0xE000 and point not in (0x20, 0xA0)]
        single = [bytes([byte]) for byte in range(256)]
        codes = single + [bytes(each) for each in product(range(0x80, 256), range(0x30, 256))]
        codes += [b"\x8f" + bytes(each) for each in product(range(0xA1, 256), range(0xA1, 256))]
        for table, values in (("points", points), ("bytes", codes)):
            for start in range(0, len(values), 5000):
                cursor.executemany(f"INSERT INTO {table} VALUES (%s)", values[start : start + 5000])
        known = names(cursor)
        archive.writestr("names.json", json.dumps(known))
        cursor.execute("SELECT c, HEX(WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci)) FROM points")
        base = dict(cursor)
        for name, _, _, most in known["charsets"]:
            if most == 1 and name != "binary":
                archive.writestr(f"charset/{name}", single_bytes(cursor, name))
        for _, name, charset, *_ in known["collations"]:
            if charset not in UNICODE and charset != "binary" and not name.endswith("_bin"):
                archive.writestr(f"weights/{name}", json.dumps(weights(cursor, charset, name), ensure_ascii=False))
            elif charset == "utf8mb4" and not name.endswith(("_bin", "_general_ci", "_unicode_ci", "_unicode_520_ci")):
                theirs = "utf8mb4_croatian_mysql561_ci" if name == "utf8mb4_croatian_ci" else name
                archive.writestr(f"tailoring/{name[8:]}", json.dumps(tailoring(cursor, theirs, base), ensure_ascii=False))
                print(name)
    print(f"{OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
