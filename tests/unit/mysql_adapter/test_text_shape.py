"""Texts of a shape that was learnt are read as the template's reader reads them, or they have another shape."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.sql.text.parameter_types import codes_of
from controller.sql.text.template import reader
from dataflow.errors import MillraceError
from mysql_adapter.shortcuts.text_shape import read_text

STATEMENTS = [
    "SELECT * FROM t WHERE a = {} AND b = {}",
    "SELECT {} AS one, c1 FROM t1 WHERE a={} OR `c 2`={}",
    "SELECT a FROM t WHERE a IN ({}, {}, {})",
    "SELECT a FROM t WHERE a = {} AND b IN ({}, {}) ORDER BY c LIMIT {}",
    "SELECT a FROM t WHERE a IN ({},{}) AND b in ({})",
    "SELECT a FROM t WHERE a = -{} AND DATE {} < d AND _utf8 {} = e AND f{} = g.{}",
    "SELECT a FROM t WHERE a = {} {} /* {} */",
    "INSERT INTO t VALUES ({}, {})",
    "INSERT INTO t VALUES ({}, {}), ({}, {})",
    "UPDATE t SET a = {} WHERE b = {}",
]
LITERALS = [
    "0", "5", "77", "007", "123456789012345678", "1234567890123456789", "99999999999999999999", "-3", "1.5", ".5", "5.", "1e3", "0x1F", "0b1",
    "'a'", "''", "'5'", "'it''s'", "'a' 'b'", r"'a\'b'", r"'\\'", "'--'", "'/*'", "'#'", "'; '", "'x\ny'", "'é'", "x'41'", "N'a'", "_latin1'a'",
    '"d"', '"', "'", "`5`", "NULL", "@5", "'" + "s" * 255 + "'", "'" + "s" * 256 + "'", "'2024-01-01'", "5 + 6", "(5, 6)",
]  # fmt: skip


@given(st.sampled_from(STATEMENTS), st.lists(st.tuples(st.sampled_from(LITERALS), st.sampled_from(LITERALS)), min_size=5, max_size=5), st.booleans())
def test_what_is_learnt_of_one_text_holds_for_all_of_its_shape(statement: str, literals: list[tuple[str, str]], backslash: bool) -> None:
    first, second = (statement.format(*some) for some in zip(*literals))
    learnt, other = read_text(first.encode()), read_text(second.encode())
    if learnt is None or other is None or learnt.shape != other.shape:
        return
    try:
        known = reader(False, backslash).read(first)
    except MillraceError:
        return
    if learnt.is_read_as(tuple(known.values)):
        found = reader(False, backslash).read(second)
        assert (found.template, codes_of(found)) == (known.template, codes_of(known))
        assert tuple(found.values) == other.parameters


def test_literals_are_the_parameters() -> None:
    read = read_text(b"SELECT a FROM t WHERE a = 7 AND b = 'x y' AND c1 IN (3, 4, 5) ORDER BY a")
    assert read is not None and read.parameters == (7, "x y", 3, 4, 5, 5)
    assert read.shape == ((b"SELECT a FROM t WHERE a = ", b" AND b = ", b" AND c1 IN "), (int, str), 4, b" ORDER BY a")
    assert read.is_read_as((7, "x y", 3, 4, 5, 5)) and not read.is_read_as((7, "x y", 3, 4, 5)) and not read.is_read_as((7.0, "x y", 3, 4, 5, 5))
    another = read_text(b"SELECT a FROM t WHERE a = 8 AND b = '' AND c1 IN (3, 4, 5, 6) ORDER BY a")
    assert another is not None and another.shape == read.shape


def test_what_is_not_plain_is_not_learnt() -> None:
    for text in ("SELECT 'it''s', 5", "SELECT _utf8 'a', 5", "SELECT 5 -- 6", 'SELECT "5", 5', "SELECT `5, 5"):
        read = read_text(text.encode())
        assert read is not None and not read.is_read_as(read.parameters)
