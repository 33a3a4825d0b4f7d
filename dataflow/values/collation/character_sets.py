"""The data of character sets and collations other than Unicode's: `character_sets.dat`, a zip archive.

It was derived from MariaDB (tests/unit/dataflow/character_sets.py, which says what is in it). Character sets of single
bytes are Python codecs of their own, named `millrace_latin1` and so on: MySQL's tables differ from Python's in places.
"""

from __future__ import annotations

import codecs
import json
import zipfile
from functools import cache
from importlib.resources import files
from typing import Any

PREFIX = "millrace_"
MULTIBYTE = {
    "big5": "big5", "cp932": "cp932", "eucjpms": "euc_jp", "euckr": "cp949", "gb2312": "gb2312", "gbk": "gbk",
    "sjis": "shift_jis", "ujis": "euc_jp", "utf8mb3": "utf-8", "utf8mb4": "utf-8", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "binary": "utf-8",
}  # fmt: skip
"""Python's codecs of those that have more bytes."""


@cache
def _read(name: str) -> bytes:
    with files(__package__).joinpath("character_sets.dat").open("rb") as file, zipfile.ZipFile(file) as archive:
        return archive.read(name) if name in archive.namelist() else b""


def names() -> dict[str, list[list[Any]]]:
    """The character sets and the collations that MariaDB has, too."""
    found: dict[str, list[list[Any]]] = json.loads(_read("names.json"))
    return found


def codec_name(charset: str) -> str:
    return MULTIBYTE.get(charset) or PREFIX + charset


@cache
def byte_weights(collation: str) -> dict[str, bytes]:
    """The weights of a collation's characters as bytes; empty if it is Unicode's or binary."""
    found = _read(f"weights/{collation}")
    return {text: bytes.fromhex(weight) for text, weight in json.loads(found).items()} if found else {}


@cache
def tailoring(language: str) -> dict[str, tuple[int, ...]]:
    """Where `…_LANGUAGE` differs from unicode_ci: the weights of characters, and of several that count as one."""
    found: dict[str, str] = json.loads(_read(f"tailoring/{language}") or b"{}")
    return {text: tuple(int(weight[at : at + 4], 16) for at in range(0, len(weight), 4)) for text, weight in found.items()}


def _own_codec(name: str) -> codecs.CodecInfo | None:
    if not name.startswith(PREFIX):
        return None
    table = _read(f"charset/{name.removeprefix(PREFIX)}").decode()
    if not table:
        return None
    # A byte without a character is kept, as it is in UTF-8 (see `dataflow.values.conversion`).
    table = "".join([chr(0xDC00 + byte) if character == "\ufffe" else character for byte, character in enumerate(table)])
    places: dict[int, int] = {}
    for byte, character in enumerate(table):
        places.setdefault(ord(character), byte)

    class Decoder(codecs.IncrementalDecoder):
        """For files, which come in pieces: a byte is a character."""

        def decode(self, data: Any, final: bool = False) -> str:
            return codecs.charmap_decode(data, self.errors, table)[0]

    return codecs.CodecInfo(
        lambda text, errors="strict": codecs.charmap_encode(text, errors, places),
        lambda data, errors="strict": codecs.charmap_decode(data, errors, table),
        incrementaldecoder=Decoder,
        name=name,
    )


def _utf8_bytes(error: UnicodeError) -> tuple[bytes, int]:
    """What a character set lacks as the bytes that it has in UTF-8: for keys, which have to differ for what differs."""
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.end].encode("utf-8", "surrogateescape"), error.end


def _marks(error: UnicodeError) -> tuple[str, int]:
    """A question mark for each byte that is no text."""
    assert isinstance(error, UnicodeDecodeError)
    return "?" * (error.end - error.start), error.end


codecs.register(_own_codec)
codecs.register_error("millrace_marks", _marks)
codecs.register_error("millrace_utf8", _utf8_bytes)
