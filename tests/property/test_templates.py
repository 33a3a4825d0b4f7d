"""A template filled with its values is the statement it was made of, whatever came before."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.sql.text.lexer import TokenKind, literal_value, tokens
from controller.sql.text.literals import has_own_collation
from controller.sql.text.template import TemplateReader
from dataflow.values.types import Value

SHARED = TemplateReader()
"""One for all examples: what it learnt from one statement must not spoil another."""

LITERALS = st.one_of(
    st.integers(0, 10**20).map(str),
    st.decimals(0, 1000, places=2).map(str),
    st.sampled_from(["1e5", ".5", "0x4a", "X'4A'", "b'101'", "_binary'\\0x'", "N'n'", "_utf8mb4 'é'", "'a' 'b'"]),
    st.text(alphabet="ab'\"\\`?;-#/*%_ \n0é", max_size=8).map(
        lambda value: "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    ),
    st.text(alphabet="ab'`?5 ", max_size=5).map(lambda value: '"' + value + '"'),
)
NAMES = st.sampled_from(["a", "b2", "`c 5`", "`it's`", "t.d", "`?`", "`--x`", "@v1"])
BLANKS = st.sampled_from([" ", " ", "  ", "\n", " /* 5 'x */ ", " -- it's 7\n"])
OPERATORS = st.sampled_from(["=", "<", "+", "-", "<=>", "like", "* -", "and", "or"])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 5 if depth else 1))
    if kind == 0:
        return draw(LITERALS)
    if kind == 1:
        return draw(NAMES)
    if kind == 2:
        items = draw(st.lists(LITERALS, min_size=1, max_size=5))
        return f"{draw(NAMES)} in ({', '.join(items)})"
    if kind == 3:
        return f"round({draw(expressions(depth - 1))}, {draw(st.integers(0, 3))})"
    if kind == 4:
        return f"{draw(NAMES)} between {draw(LITERALS)} and {draw(LITERALS)}"
    return f"({draw(expressions(depth - 1))} {draw(OPERATORS)} {draw(expressions(depth - 1))})"


@st.composite
def statements(draw: st.DrawFn) -> str:
    blank = draw(BLANKS)
    item = draw(expressions())
    alias = draw(st.sampled_from(["", " as k", " as 'k'"]))
    text = f"select{blank}{item}{alias}, a{blank}from t{blank}where {draw(expressions())} = {draw(expressions())}"
    if draw(st.booleans()):
        text += f"{blank}order by {draw(st.integers(1, 2))}, {draw(NAMES)} + {draw(LITERALS)}"
    if draw(st.booleans()):
        text += f" limit {draw(st.integers(0, 99))}, {draw(st.integers(0, 99))}"
    return text


def parts(sql: str, values: Sequence[Value] = ()) -> list[object]:
    """The tokens, with literals by their value and each `?` by the next of `values`."""
    remaining = iter(values)
    found: list[object] = []
    for token in tokens(sql):
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER):
            found.append(literal_value(token.text))
        else:
            found.append(next(remaining) if token.text == "?" else token.text)
    return found


def without_padding(found: list[object]) -> list[object]:
    """IN lists end in copies of their last value; drop values that repeat the one before."""
    kept: list[object] = []
    position = 0
    while position < len(found):
        if found[position] == "," and position + 1 < len(found) and len(kept) and _same(kept[-1], found[position + 1]):
            position += 2
            continue
        kept.append(found[position])
        position += 1
    return kept


def _same(one: object, two: object) -> bool:
    return type(one) is type(two) and one == two


@settings(max_examples=400, deadline=None)
@given(statements())
def test_a_filled_template_is_the_statement(sql: str) -> None:
    reading = SHARED.read(sql)
    assert without_padding(parts(reading.template.text, reading.values)) == without_padding(parts(sql))
    assert len(reading.values) == reading.template.parameter_count


ROWS = st.lists(
    st.tuples(
        st.one_of(LITERALS, st.just("NULL"), st.integers(-9, -1).map(str), st.decimals(-9, -1, places=1).map(str)),
        st.one_of(LITERALS, st.just("null"), st.just("-1.5e3")),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from([",", ", ", " , "]), st.sampled_from(["", " on duplicate key update a = 7"]))
def test_rows_of_an_insert_keep_their_values(rows: list[tuple[str, str]], comma: str, tail: str) -> None:
    body = comma.join(f"({one}{comma.strip()}{two})" for one, two in rows)
    sql = f"insert into t (a, b) values {body}{tail}"
    reading = SHARED.read(sql)
    literals = [literal for row in rows for literal in row]
    if any(map(has_own_collation, literals)):  # such rows are not put together, and some literals stay in the text
        assert signed(parts(reading.template.text, reading.values)) == signed(parts(sql))
        return
    expected: list[Value] = [*map(literal_value, literals), *([7] if tail else [])]
    assert list(reading.values) == expected
    assert reading.template.batch == (0, 2)
    assert [type(value) for value in reading.values] == [type(value) for value in expected]


def signed(found: list[object]) -> list[object]:
    """With NULLs as values, and a sign as part of the number that it stands before: as in the literals of an INSERT."""
    together: list[object] = []
    for each in found:
        if isinstance(each, int | float | Decimal) and together and together[-1] == "-":
            together[-1] = -each
        else:
            together.append(None if isinstance(each, str) and each.lower() == "null" else each)
    return together


def test_signed_decimals_keep_their_digits() -> None:
    assert SHARED.read("insert into t values (-1.50)").values == [Decimal("-1.50")]
