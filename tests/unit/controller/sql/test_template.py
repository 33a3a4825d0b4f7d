"""Text statements as templates and values."""

from __future__ import annotations

from decimal import Decimal
from time import perf_counter

import pytest

from controller.sql.text.lexer import without_comments
from controller.sql.text.parameter_types import codes_of
from controller.sql.text.template import TemplateReader, reader
from dataflow.values.types import Value

CASES: list[tuple[str, str, list[Value]]] = [
    ("select * from t where id = 5 and name='x'", "select * from t where id = ? and name=?", [5, "x"]),
    ("select a from t where b in (1, 2, 3)", "select a from t where b in (?, ?, ?, ?)", [1, 2, 3, 3]),
    ("select a from t where b not in (1)", "select a from t where b not in (?)", [1]),
    ("select a from t limit 5, 10", "select a from t limit ?, ?", [5, 10]),
    ("select a from t order by 1, b + 2 desc", "select a from t order by 1, b + ? desc", [2]),
    ("select a from t group by 1 having count(*) > 2", "select a from t group by 1 having count(*) > ?", [2]),
    ("select 1, 'x'", "select 1, 'x'", []),
    ("select 'x' as k, if(a = 5, 1, 0) as m, a + 1 from t", "select ? as k, if(a = ?, ?, ?) as m, a + 1 from t", ["x", 5, 1, 0]),
    ("select count(*) 'total' from t", "select count(*) 'total' from t", []),
    ("select a as 'x' from t where b = 'x'", "select a as 'x' from t where b = ?", ["x"]),
    ("update t set a = -5 where b = 1.5", "update t set a = -? where b = ?", [5, Decimal("1.5")]),
    ("select a from t where 1 = 1 and b = 1", "select a from t where 1 = 1 and b = ?", [1]),
    ("select a from t where 1", "select a from t where 1", []),
    ("select a from t where b between 1 and 5", "select a from t where b between ? and ?", [1, 5]),
    ("select a from t where c = date '2020-01-01'", "select a from t where c = date '2020-01-01'", []),
    ("select a from t where cast(b as decimal(10,2)) = 5", "select a from t where cast(b as decimal(10,2)) = ?", [5]),
    ("select a from t where b < now(6) - interval 5 day", "select a from t where b < now(6) - interval ? day", [5]),
    ("select a from t where round(b, 2) = 1", "select a from t where round(b, 2) = ?", [1]),
    ("select a from t where b->>'$.x' = 'y'", "select a from t where b->>'$.x' = ?", ["y"]),
    ("select a from t where b like 'x|%' escape '|'", "select a from t where b like ? escape '|'", ["x|%"]),
    ("select group_concat(a separator '|') as g from t", "select group_concat(a separator '|') as g from t", []),
    ("select a from `t 1` where `it's 5` = 5", "select a from `t 1` where `it's 5` = ?", [5]),
    ("select a /* 5 'x */ from t # 1\n where b = 2;", "select a   from t  \n where b = ?", [2]),
    ("insert into t select 5, 'x' from u where v = 1", "insert into t select ?, ? from u where v = ?", [5, "x", 1]),
    ("insert into t set a = 1, b = null", "insert into t set a = ?, b = null", [1]),
    ("select a from t where (b, c) in ((1,2),(3,4))", "select a from t where (b, c) in ((?,?),(?,?))", [1, 2, 3, 4]),
    ("select a from t where d = _binary'\\0' and e = X'41' and f = 0x42", "select a from t where d = ? and e = ? and f = ?", [b"\0", b"A", b"B"]),
    ("set names 'utf8'", "set names 'utf8'", []),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "text", "values"), CASES)
def test_literals_become_parameters_where_they_may(sql: str, text: str, values: list[Value]) -> None:
    shared = reader()
    for _ in range(2):  # the second time by the skeleton alone
        reading = shared.read(sql)
        assert reading.template.text == text
        assert list(reading.values) == values
        assert reading.template.parameter_count == len(values)


def test_statements_that_differ_in_values_share_a_template() -> None:
    fresh = TemplateReader()
    one = fresh.read("select a from t where b = 5 and c in (1, 2, 3) and d = 'x'")
    two = fresh.read("select a from t where b = 'it''s' and c in (7, 8, 9, 10) and d = -1" .replace("-1", "1.5"))
    assert one.template.text.replace(" ", "") == two.template.text.replace(" ", "")
    three = fresh.read("select a from t where b = 6 and c in (4, 5, 6) and d = 'y'")
    assert three.template is one.template


def test_statements_that_differ_in_what_stays_do_not() -> None:
    fresh = TemplateReader()
    assert fresh.read("select a, b from t order by 1").template.text.endswith("order by 1")
    assert fresh.read("select a, b from t order by 2").template.text.endswith("order by 2")


@pytest.mark.parametrize(
    ("sql", "text", "values", "batch"),
    [
        ("insert into t (a,b) values (1,'x'),(-2,NULL),(3,'z')", "insert into t (a,b) values (?,?)", [1, "x", -2, None, 3, "z"], (0, 2)),
        ("INSERT INTO t VALUES (1, now()), (2, now())", "INSERT INTO t VALUES (?, now())", [1, 2], (0, 1)),
        ("insert into t values (1,2) on duplicate key update a = 3", "insert into t values (?,?) on duplicate key update a = ?", [1, 2, 3], (0, 2)),
        ("replace into t values (default, 1.5e3, _binary'\\0'),(default, 2, _binary'x')", "replace into t values (default, ?, ?)", [1500.0, b"\0", 2, b"x"], (0, 2)),
        ("insert into t values (1, 2), (3, 4 + 5)", "insert into t values (?, ?), (?, ? + ?)", [1, 2, 3, 4, 5], None),
        ("insert into t values (1, now(6)), (2, now(6))", "insert into t values (?, now(6)), (?, now(6))", [1, 2], None),
        ("insert into t values (1, date '2020-01-01')", "insert into t values (?, date '2020-01-01')", [1], None),
    ],
)  # fmt: skip
def test_rows_of_one_shape_fold_into_one(sql: str, text: str, values: list[Value], batch: tuple[int, int] | None) -> None:
    for _ in range(2):
        reading = reader().read(sql)
        assert (reading.template.text, list(reading.values), reading.template.batch) == (text, values, batch)


def test_unfolded_rows_stay() -> None:
    reading = reader().read("insert into t values (1),(2)", fold=False)
    assert reading.template.text == "insert into t values (?),(?)"


def test_other_quoting_modes_give_the_same_canonical_text() -> None:
    reading = reader(ansi_quotes=True, backslash=False).read("select \"a\"\"b\" as x, '\\' from t where a='\\' order by '\\''x'")
    assert reading.template.text == "select `a\"b` as x, '\\\\' from t where a=? order by '\\\\''x'"
    assert list(reading.values) == ["\\"]


def test_a_literal_with_a_character_set_stays_where_a_plain_one_was_a_parameter_before() -> None:
    shared = TemplateReader()
    assert shared.read("INSERT INTO t VALUES ('a')").template.text == "INSERT INTO t VALUES (?)"
    assert shared.read("INSERT INTO t VALUES (_koi8r'\xc1')").template.text == "INSERT INTO t VALUES (_koi8r'\xc1')"
    assert shared.read("INSERT INTO t VALUES ('b')").template.text == "INSERT INTO t VALUES (?)"


def test_a_repeated_statement_is_read_quickly() -> None:
    """20 µs is the target; the bound leaves room for a busy machine."""
    sql = "SELECT `stories`.* FROM `stories` WHERE `stories`.`is_expired` = 0 AND `stories`.`id` IN (1, 2, 3) ORDER BY hotness LIMIT 51"
    shared = reader()
    shared.read(sql)
    best = 1.0
    for _ in range(20):
        start = perf_counter()
        for _ in range(100):
            shared.read(sql)
        best = min(best, (perf_counter() - start) / 100)
    assert best < 60e-6


def test_statements_that_never_repeat_do_not_fill_the_memory() -> None:
    fresh = TemplateReader(length_max=10_000)
    for number in range(3000):
        assert fresh.read(f"select {number}").template.text == f"select {number}"
    [known] = fresh._skeletons.values()
    assert len(known.templates) <= 1000
    for number in range(100):
        fresh.read(f"select a from t where c{number} = 5")
    assert sum(map(len, fresh._skeletons)) <= 10_000


NUMBERS = ", ".join(f"({number}, {number * 3})" for number in range(100))


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO t VALUES {NUMBERS}",
        f"INSERT INTO t (a, b) VALUES {NUMBERS}",
        f"insert into `t` (`a`, `b`)\nvalues{NUMBERS.replace(' ', '')}",
        f"REPLACE t (a, b) VALUE {NUMBERS}",
        f"INSERT INTO t VALUES {NUMBERS} ON DUPLICATE KEY UPDATE a = 1",
        f"INSERT INTO t VALUES {NUMBERS}, (1, NULL)",
        f"INSERT INTO t VALUES {NUMBERS}, (1, '\udcff')",
        f"INSERT INTO t VALUES {NUMBERS}, (1)",
        f"INSERT INTO t VALUES {NUMBERS}, (1, 18446744073709551615)",
        f"INSERT INTO t VALUES {NUMBERS};",
        f"INSERT INTO t VALUES {NUMBERS} -- ",
        f"INSERT INTO t SELECT 1, a FROM u WHERE b IN {NUMBERS[1:7]}" + " " * 300,
    ],
)
def test_rows_of_numbers_are_read_as_other_rows(sql: str) -> None:
    plain = TemplateReader()._read(without_comments(sql).strip(), True, True)
    reader = TemplateReader()
    for _ in range(3):
        reading = reader.read(sql)
        assert reading.template == plain.template and list(reading.values) == list(plain.values)
        assert codes_of(reading) == codes_of(plain)


def test_rows_of_another_width_have_another_template() -> None:
    reader = TemplateReader()
    for width in (1, 2, 3, 2, 1):
        rows = ", ".join([f"({', '.join(['7'] * width)})"] * 200)
        for _ in range(2):
            reading = reader.read(f"INSERT INTO t VALUES {rows}")
            assert reading.template.batch == (0, width) and reading.values == [7] * 200 * width


@pytest.mark.parametrize("comma", [", ", " ,\n"])
@pytest.mark.parametrize("tail", ["", " ON DUPLICATE KEY UPDATE a = 7"])
def test_an_insert_of_many_rows_is_read_as_one_of_few(comma: str, tail: str) -> None:
    """Whatever its strings look like."""
    texts = ["'),'", "'), ('", "'it''s),'", r"'\'),('", r"'\\'", "'a'", "NULL", '"),"']
    rows = [f"({number}, {texts[number % len(texts)]})" for number in range(8_000)]
    long, short = (TemplateReader().read(f"INSERT INTO t VALUES {comma.join(rows[:count])}{tail}") for count in (None, 16))
    assert long.template == short.template
    assert list(long.values[:16_000]) == [value for n in range(8_000) for value in (n, short.values[n % 8 * 2 + 1])]
    assert long.values[16_000:] == short.values[32:]


@pytest.mark.parametrize("tail", [",", ", (1)", ", (1, `2"])
def test_an_insert_of_many_rows_that_is_none_is_read_as_it_is(tail: str) -> None:
    """Not as the rows without what makes no sense."""
    rows = ", ".join(f"({number}, {number})" for number in range(8_000))
    assert TemplateReader().read(f"INSERT INTO t VALUES {rows}{tail}").template.batch is None
