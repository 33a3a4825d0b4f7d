"""Random expressions over values of different kinds: compared, chosen from, computed with, cast, united, grouped and ordered by.

What is left out is what MariaDB, by its documentation or by mistake, does in another way than MySQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.differential.generator import Generated

COLUMNS = {
    "i": "INT", "u": "BIGINT UNSIGNED", "d": "DECIMAL(8,2)", "f": "DOUBLE", "t": "VARCHAR(20) COLLATE utf8mb4_general_ci",
    "l": "VARCHAR(20) CHARACTER SET latin1", "b": "VARCHAR(20) COLLATE utf8mb4_bin", "v": "VARBINARY(20)", "da": "DATE", "dt": "DATETIME",
    "ti": "TIME", "tf": "TIME(3)", "df": "DATETIME(3)", "y": "YEAR", "e": "ENUM('m','a','10','É') COLLATE utf8mb4_general_ci",
    "s": "SET('m','a','10','É') COLLATE utf8mb4_general_ci",
}  # fmt: skip
VALUES = {
    "i": ("0", "1", "-7", "10", "20200101", "93"), "u": ("0", "1", "10", "20200102103000"), "d": ("0", "1.50", "-7", "10", "93"),
    "f": ("0", "1.5", "-7", "10", "1e3"), "t": ("'a'", "'A'", "'10'", "''", "'É'", "'m'", "'2020-01-01'", "'10:30:00'"),
    "l": ("'a'", "'e'", "'10'", "'É'", "'m,a'", "'1.5'"), "b": ("'a'", "'A'", "'10'", "'M'", "'é'"), "v": ("'a'", "'A'", "'10'", "0xC9"),
    "da": ("'2020-01-01'", "'2020-01-02'", "'1993-12-31'", "'2023-11-14'"),
    "dt": ("'2020-01-01 00:00:00'", "'2020-01-02 10:30:00'", "'2023-11-14 10:30:00'"),
    "ti": ("'10:30:00'", "'00:00:00'", "'-01:00:00'", "'00:00:10'", "'30:15:00'", "'-26:30:00'"), "tf": ("'10:30:00.250'", "'00:00:00.375'", "'-30:15:00.125'", "'10:30:00'"),
    "df": ("'2020-01-02 10:30:00.250'", "'2023-11-14 10:30:00.250'", "'2023-11-15 06:15:00'", "'2020-01-01'"), "y": ("1993", "2000", "2020", "2010"),
    "e": ("'m'", "'a'", "'10'", "'É'"), "s": ("'m'", "'a'", "'m,a'", "''", "'10,É'", "'m,a,10'"),
}  # fmt: skip
NUMBERS = ("i", "u", "d", "f", "y")
TEXTS = ("t", "l", "b", "e", "s")
TIMES = ("da", "dt", "ti", "tf", "df")
MIXED = ("i", "u", "d", "f", "t", "l", "b")
LITERALS = {
    "number": ("0", "1", "10", "93", "1.5", "-7", "20200101", "0x0A", "b'1010'", "1e0", "10/3"),
    "text": (
        "'a'", "'A'", "'10'", "''", "'m'", "_utf8mb4'a'", "_latin1'A'", "_latin1 0xC9", "_utf8mb4 0xC389", "N'm'", "_binary'a'",
        "_utf8mb3'é'", "'a' COLLATE utf8mb4_bin",
    ),
    "time": (
        "'2020-01-01'", "DATE'2020-01-02'", "TIMESTAMP'2020-01-02 10:30:00'", "TIME'10:30:00'", 
    ),
}  # fmt: skip
YEARS = 4
"""So many of the numbers are compared with a YEAR: MySQL and MariaDB take fractions for years, too."""
ROWS = 12
COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=", "<>")


def kind(column: str) -> str:
    return "time" if column in TIMES else "text" if column in TEXTS or column == "v" else "number"


def definitions(random: Random) -> list[str]:
    lines = ["id INT PRIMARY KEY", *(f"{name} {type_}" for name, type_ in COLUMNS.items())]
    keys = [f"KEY k{name} ({name})" for name in random.sample(list(COLUMNS), 4)]
    found = [f"CREATE TABLE m ({', '.join(lines + keys)}) DEFAULT CHARSET=utf8mb4"]
    rows = []
    for number in range(1, ROWS + 1):
        values = ["NULL" if random.random() < 0.15 else random.choice(VALUES[name]) for name in COLUMNS]
        rows.append(f"({number}, {', '.join(values)})")
    return [*found, f"INSERT INTO m VALUES {', '.join(rows)}"]


class MixedValues:
    def __init__(self, random: Random) -> None:
        self._random = random

    def statements(self, count: int) -> Iterator[Generated]:
        for _ in range(count):
            yield self._statement()

    def _statement(self) -> Generated:
        random = self._random
        draw = random.random()
        if draw < 0.3:
            return Generated(f"SELECT id, {self._value()} FROM m", approximate=True)
        if draw < 0.55:
            return Generated(f"SELECT id FROM m WHERE {self._predicate()}")
        if draw < 0.63:
            one = random.choice([each for each in COLUMNS if each != "y"])
            other = random.choice([each for each in COLUMNS if kind(each) == kind(one) and each != "y"])
            return Generated(f"SELECT x.id, y.id FROM m x JOIN m y ON x.{one} {random.choice(('=', '=', '<=>', '<'))} y.{other}")
        if draw < 0.72:
            function = random.choice(("SUM(", "MIN(", "MAX(", "COUNT(DISTINCT "))
            one, other = random.sample(("i", "u", "d", "f", "da", "dt"), 2)
            # The least and greatest member MariaDB takes from an index, where it has one, by its number. CAST(1.5 AS BINARY) + 0 is 2 in it.
            given = next(value for value in iter(self._value, "") if value not in ("e", "s", "CAST(v AS CHAR)") and "AS BINARY" not in value)
            value = random.choice((f"AVG({one})", f"AVG({one} / {other})", f"BIT_OR({one})", f"{function}{given})", f"{function}{given})"))
            return Generated(f"SELECT {value} FROM m", approximate=True)
        if draw < 0.82:
            return Generated(f"SELECT id FROM m ORDER BY {self._value()}, id", ordered=True)
        if draw < 0.91:
            one = random.choice([each for each in COLUMNS if each != "v"])
            other = random.choice([each for each in COLUMNS if kind(each) == kind(one) and each != "v"])
            all_ = random.choice(("", " ALL")) if kind(one) != "text" else " ALL"  # else it is up to the server which of equal texts is shown
            return Generated(f"SELECT {one} AS c FROM m UNION{all_} SELECT {other} FROM m", approximate=True)
        return Generated(f"SELECT COUNT(*) FROM m GROUP BY {self._value()}")

    def _column(self) -> str:
        return self._random.choice(list(COLUMNS))

    def _operand(self, like: str) -> str:
        """A column or a literal of the kind of column `like`; or a number beside a text."""
        random = self._random
        draw = random.random()
        if draw < 0.4:
            return random.choice(LITERALS[kind(like)][: YEARS if like == "y" else None])
        if draw < 0.55 and like in MIXED:
            return random.choice(MIXED)
        return random.choice([each for each in COLUMNS if kind(each) == kind(like)])

    def _pair(self) -> tuple[str, str]:
        one = self._column()
        return one, self._operand(one)

    def _predicate(self, depth: int = 0) -> str:
        random = self._random
        one, other = self._pair()
        draw = random.random()
        if draw < 0.45 or one == "y":
            return f"{one} {random.choice(COMPARISONS)} {other}"
        if draw < 0.6:
            return f"{one} {random.choice(('', 'NOT '))}IN ({other}, {self._operand(one)})"
        if draw < 0.75:
            return f"{one} {random.choice(('', 'NOT '))}BETWEEN {other} AND {self._operand(one)}"
        if draw < 0.85:
            return f"{self._value()} {random.choice(COMPARISONS)} {random.choice(('1', '10', chr(39) + 'a' + chr(39)))}"
        if draw < 0.9 and depth < 2:
            return f"({self._predicate(depth + 1)} {random.choice(('AND', 'OR', 'XOR'))} {self._predicate(depth + 1)})"
        return random.choice((f"NOT {one}", f"{one} IS TRUE", f"{one} LIKE '1%'", f"{one} AND {other}"))

    def _value(self) -> str:
        random = self._random
        one, other = self._pair()
        third = self._operand(one)
        draw = random.random()
        if draw < 0.1:
            return one
        if draw < 0.35:
            one, other, third = (each if each not in ("v", "y", "_binary'a'") else "t" for each in (one, other, third))
            return random.choice((
                f"COALESCE({one}, {other})", f"IFNULL({one}, {other})", f"IF({self._predicate(2)}, {one}, {other})", f"NULLIF({one}, {other})",
                f"CASE {one} WHEN {other} THEN {third} ELSE {one} END", f"CASE WHEN {self._predicate(2)} THEN {one} WHEN i = 1 THEN {other} END",
            ))  # fmt: skip
        if draw < 0.45:
            one, other, third = random.sample(random.choice((("i", "u", "d", "f"), ("da", "dt", "da"))), 3)
            return f"{random.choice(('GREATEST', 'LEAST'))}({one}, {other}, {third})"
        if draw < 0.6:
            operators = ("+", "-", "*", "/", "DIV", "|", "&") if one in ("i", "u") else ("+", "-", "*", "/")
            return f"({one} {random.choice(operators)} {other})"
        if draw < 0.7:
            type_ = random.choice(("SIGNED", "DECIMAL(12,3)", "CHAR", "BINARY"))
            if kind(one) == "time":
                type_ = random.choice((type_, "DATE", "DATETIME", "TIME"))
            return f"CAST({one} AS {type_})"
        if draw < 0.8:
            return random.choice((f"CONCAT({one}, {other})", f"CONCAT_WS('-', {one}, {other}, {third})", f"HEX({one})", f"LENGTH({one})", f"CHAR_LENGTH({one})",
                                  f"UPPER({one})", f"LEFT({one}, 2)", f"INSTR({one}, {other})", f"REPLACE({one}, {other}, 'x')", f"FIELD({one}, {other}, {third})",
                                  f"STRCMP({one}, {other})", "FIND_IN_SET('10', s)", f"LPAD({one}, 5, {other})", f"ELT(2, {one}, {other})"))  # fmt: skip
        if draw < 0.88:
            one = random.choice(TIMES)
            return random.choice((f"YEAR({one})", f"DATE({one})", f"TIME({one})", f"HOUR({one})", f"TIMESTAMP({one})", f"DATEDIFF(dt, {one})", f"ADDTIME({one}, ti)",
                                  f"TIMESTAMP({one}, ti)", f"DATE_ADD({one}, INTERVAL 1 DAY)", f"TIMEDIFF({one}, ti)", "DATE_FORMAT(dt, '%Y %m %d %H')", f"LAST_DAY({one})"))  # fmt: skip
        return f"({self._predicate(2)})"
