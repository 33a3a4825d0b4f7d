"""Files of LOAD DATA as rows, however they are cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mysql_adapter.sessions.infile import FieldReader, Fields, Format


def rows(data: bytes, format: Format, piece: int = 1 << 20, codec: str = "utf-8") -> list[Fields]:
    reader = FieldReader(format, codec)
    found: list[Fields] = []
    for start in range(0, len(data), piece):
        found += reader.feed(data[start : start + piece])
    return found + list(reader.finish())


CSV = Format(field_end=",", enclosure='"')


@pytest.mark.parametrize(
    ("format", "data", "expected"),
    [
        (Format(), b"1\ta\n2\tb\n", [["1", "a"], ["2", "b"]]),
        (Format(), b"1\ta\n2\tb", [["1", "a"], ["2", "b"]]),
        (Format(), b"", []),
        (Format(), b"\n", [[""]]),
        (Format(), b"\\N\t\\n\\t\\\\\\x\\0\n", [[None, "\n\t\\x\0"]]),
        (Format(), b"NULL\n", [["NULL"]]),
        (Format(), b"a\\\tb\\\nc\n", [["a\tb\nc"]]),
        (Format(lines_skipped=2), b"x\ny\nz\n", [["z"]]),
        (Format(lines_skipped=9), b"x\ny\nz\n", []),
        (Format(line_start=">>"), b"no>>a\tb\nskipped\n>>c\n", [["a", "b"], ["c"]]),
        (Format(line_end="\r\n"), b"a\tb\r\nc\rd\te\r\n", [["a", "b"], ["c\rd", "e"]]),
        (Format(field_end="||"), b"a|b||c\n", [["a|b", "c"]]),
        (CSV, b'"a,b","c""d",e\n', [["a,b", 'c"d', "e"]]),
        (CSV, b'"a\nb",NULL,"NULL"\n', [["a\nb", None, "NULL"]]),
        (CSV, b'"a"b","c"\n', [['a"b', "c"]]),
        (CSV, b'a"b,"",\n', [['a"b', "", ""]]),
        (CSV, b'"never closed,1\n', [["never closed,1"]]),
        (Format(field_end=",", escape=""), b"a\\,b\\N,NULL\n", [["a\\", "b\\N", None]]),
    ],
)
@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_rows(format: Format, data: bytes, expected: list[Fields], piece: int) -> None:
    assert rows(data, format, piece) == expected


def test_character_sets_and_any_bytes() -> None:
    assert rows("é\tß\n".encode("cp1252"), Format(), codec="cp1252") == [["é", "ß"]]
    assert rows("日本\n".encode(), Format(), piece=1) == [["日本"]]
    (((field,),)) = rows(b"\xff\xfe\n", Format())
    assert field is not None and field.encode("utf-8", "surrogateescape") == b"\xff\xfe"


def quoted(value: str | None) -> str:
    if value is None:
        return "\\N"
    return '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'


fields = st.one_of(st.none(), st.text(alphabet='ab\\",\n\tNé', max_size=6))


@given(st.lists(st.lists(fields, min_size=1, max_size=4), max_size=6), st.integers(1, 9))
def test_what_is_written_is_read(written: list[Fields], piece: int) -> None:
    data = "".join(",".join(map(quoted, row)) + "\n" for row in written).encode()
    assert rows(data, CSV, piece) == written


def test_long_rows_take_linear_time() -> None:
    assert rows(b'"' + b'a""' * 200_000 + b'"\n' + b"\\a" * 200_000, CSV)[0] == ['a"' * 200_000]


def test_an_enclosure_that_escapes_is_doubled() -> None:
    """"fie""ld1","field2": the escape does nothing else, so a backslash and a single quotation mark end no field."""
    format = Format(field_end=",", enclosure='"', escape='"')
    assert rows(b'"a","b"\n"fie""ld1","\\n"\n"",x\n', format) == [["a", "b"], ['fie"ld1', "\\n"], ["", "x"]]
