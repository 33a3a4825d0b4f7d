"""Random expressions, each as SQL text and as ours, over the columns of one table."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.functions import call
from dataflow.functions.casts import cast, collate
from dataflow.values import temporal
from dataflow.values.types import (
    BIGINT,
    DATE,
    DATETIME,
    DOUBLE,
    NULL,
    TIME,
    Kind,
    SqlType,
    Value,
    decimal,
    text,
)

COLLATION = "utf8mb4_general_ci"


def varchar(length: int | None = 20, collation: str = COLLATION) -> SqlType:
    return text(length, collation)


COLUMNS: tuple[tuple[str, str, SqlType], ...] = (
    ("i", "INT", SqlType(Kind.INT)),
    ("b", "BIGINT", BIGINT),
    ("u", "BIGINT UNSIGNED", SqlType(Kind.BIGINT, unsigned=True)),
    ("n", "TINYINT UNSIGNED", SqlType(Kind.TINYINT, unsigned=True)),
    ("d", "DECIMAL(10,2)", decimal(10, 2)),
    ("d4", "DECIMAL(20,4)", decimal(20, 4)),
    ("f", "DOUBLE", DOUBLE),
    ("s", f"VARCHAR(20) COLLATE {COLLATION}", varchar()),
    ("c", f"CHAR(10) COLLATE {COLLATION}", SqlType(Kind.CHAR, 10, collation=COLLATION)),
    ("sb", "VARCHAR(20) COLLATE utf8mb4_bin", varchar(20, "utf8mb4_bin")),
    ("bl", "VARBINARY(20)", SqlType(Kind.VARBINARY, 20)),
    ("dt", "DATE", DATE),
    ("dtm", "DATETIME", DATETIME),
    ("dt3", "DATETIME(3)", SqlType(Kind.DATETIME, scale=3)),
    ("t", "TIME", TIME),
    ("e", f"ENUM('red','Green','blue') COLLATE {COLLATION}", SqlType(Kind.ENUM, collation=COLLATION, members=("red", "Green", "blue"))),
    ("st", f"SET('x','y','z') COLLATE {COLLATION}", SqlType(Kind.SET, collation=COLLATION, members=("x", "y", "z"))),
    ("y", "YEAR", SqlType(Kind.YEAR)),
)  # fmt: skip


def date(text_: str) -> int:
    value = temporal.read_datetime(text_)[0]
    assert value is not None
    return value


def time(text_: str) -> int:
    value = temporal.read_time(text_)[0]
    assert value is not None
    return value


ROWS: tuple[tuple[Value, ...], ...] = (
    (1, 2, 3, 4, Decimal("1.50"), Decimal("2.2500"), 1.5, "abc", "abc", "abc", b"abc",
     date("2020-01-02"), date("2020-01-02 03:04:05"), date("2020-01-02 03:04:05.678"), time("10:11:12"), "red", "x,z", 2020),
    (-7, -9_000_000_000, 0, 255, Decimal("-0.05"), Decimal("-1234567.8910"), -2.5, "ABC", "Ünï", "ABC", b"12",
     date("1999-12-31"), date("1999-12-31 23:59:59"), date("2000-02-29 23:59:59.999"), time("-01:00:01"), "Green", "", 1999),
    (0, 0, 18_446_744_073_709_551_615, 0, Decimal("0.00"), Decimal("0.0000"), 0.0, "", "", "", b"",
     date("2038-01-19"), date("2020-01-02"), date("2020-01-02"), 0, "blue", "y", 2001),
    (None,) * 18,
    (2_147_483_647, 9_223_372_036_854_775_807, 9_223_372_036_854_775_808, 1, Decimal("99999999.99"), Decimal("1.0001"), 1e20,
     "12.5abc", "2020-01-02", "10", b"\xc3\xa9", date("2000-02-29"), date("2000-02-29 12:00:00"), date("1970-01-01"),
     time("100:00:01"), "red", "x,y,z", 2155),
    (-2_147_483_648, -9_223_372_036_854_775_808, 10, 100, Decimal("12.34"), Decimal("12.3400"), 0.1,
     "élan%", "ELAN_", "élan ", b"1e1", date("2020-02-28"), date("2020-02-28 00:00:01"), date("2020-02-28 00:00:00.500"),
     time("00:00:59"), "Green", "z", 1970),
)  # fmt: skip


def sql_literal(value: Value, type_: SqlType) -> str:
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.DATE:
            return f"DATE'{temporal.format_date(value)}'"  # type: ignore[arg-type]
        case Kind.DATETIME:
            return f"TIMESTAMP'{temporal.format_datetime(value, type_.scale)}'"  # type: ignore[arg-type]
        case Kind.TIME:
            return f"TIME'{temporal.format_time(value, type_.scale)}'"  # type: ignore[arg-type]
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "''")
        return f"'{escaped}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        found = repr(value)
        return found if "e" in found else found + "e0"
    return str(value)


@dataclass(frozen=True)
class Sample:
    """The same expression twice."""

    sql: str
    ours: Expression


INTEGERS = (0, 1, 2, 3, 5, 7, 10, 100, 127, 2020, 20200102, 2147483648, 9223372036854775807, 18446744073709551615)
DECIMALS = ("0.5", "1.5", "2.25", "0.001", "100.10", "1.0", "12345678901234567890.123", "0.3333")
REALS = (0.0, 0.5, 1.5, 2.5, 1e10, 0.1, 3e-5, 1e18)
TEXTS = ("abc", "ABC", "ab", "a", "", " ", "abc ", "12", "12.5", "1e1", "élan", "ELAN", "ß", "ss", "0", "2020-01-02", "2020-1-2",
         "10:11:12", "red", "GREEN", "x,z", "5abc", "-3", "a%", "20200102", "2020-01-02 03:04:05")  # fmt: skip
DATE_TEXTS = ("2020-01-02", "1999-12-31", "2000-02-29", "2021-06-15")
TIME_TEXTS = ("10:11:12", "-01:00:01", "00:00:00", "100:00:00")
PATTERNS = ("a%", "%c", "%b%", "a_c", "abc", "ABC", "%", "", "_", "é%", "e%", "12%", "a\\%", "%\\%", "2020%", "%-01-%", "abc ", "r%d")
REGEXPS = ("a", "^a", "c$", "^[a-c]+$", "[[:digit:]]+", "b|1", "^$", "A.C", "2020")
CAST_TARGETS: tuple[tuple[str, SqlType], ...] = (
    ("SIGNED", BIGINT),
    ("UNSIGNED", SqlType(Kind.BIGINT, unsigned=True)),
    ("DECIMAL(10,2)", decimal(10, 2)),
    ("DECIMAL(5,0)", decimal(5, 0)),
    ("DECIMAL(30,10)", decimal(30, 10)),
    ("CHAR", varchar(None)),
    ("CHAR(3)", SqlType(Kind.CHAR, 3, collation=COLLATION)),
    ("BINARY", SqlType(Kind.LONGBLOB)),
    ("BINARY(4)", SqlType(Kind.BINARY, 4)),
    ("DATE", DATE),
    ("DATETIME", DATETIME),
    ("DATETIME(3)", SqlType(Kind.DATETIME, scale=3)),
    ("TIME", TIME),
    ("TIME(2)", SqlType(Kind.TIME, scale=2)),
    ("DOUBLE", DOUBLE),
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


class Generator:
    """Expressions of a seeded random choice; `depth` bounds how deep they nest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def leaf(self) -> Sample:
        choose = self.random
        if choose.random() < 0.5:
            position = choose.randrange(len(COLUMNS))
            return self.column(position)
        return self.literal()

    def column(self, position: int) -> Sample:
        return Sample(COLUMNS[position][0], Column(position, COLUMNS[position][2]))

    def literal(self) -> Sample:
        choose = self.random
        value: Value
        match choose.randrange(12):
            case 0 | 1 | 2:
                number = choose.choice(INTEGERS)
                value, type_ = number, SqlType(Kind.BIGINT, unsigned=number > 9223372036854775807)
            case 3 | 4:
                digits = choose.choice(DECIMALS)
                value = Decimal(digits)
                scale = len(digits.partition(".")[2])
                type_ = decimal(max(len(digits) - 1, scale), scale)
            case 5:
                value, type_ = choose.choice(REALS), DOUBLE
            case 6 | 7 | 8:
                string = choose.choice(TEXTS)
                value, type_ = string, varchar(len(string))
            case 9:
                value, type_ = date(choose.choice(DATE_TEXTS)), DATE
            case 10:
                if choose.random() < 0.5:
                    value, type_ = date(choose.choice(DATE_TEXTS) + " 03:04:05"), DATETIME
                else:
                    value, type_ = time(choose.choice(TIME_TEXTS)), TIME
            case _:
                value, type_ = None, NULL
        return Sample(sql_literal(value, type_), Literal(value, type_))

    def sample(self, depth: int) -> Sample:
        if depth <= 0:
            return self.leaf()
        makers: list[Callable[[int], Sample]] = [
            self.arithmetic, self.arithmetic, self.bits, self.comparison, self.comparison, self.comparison, self.logic, self.membership,
            self.membership, self.null_tests, self.pattern, self.choice, self.choice, self.cast, self.rows, self.collated,
        ]  # fmt: skip
        return self.random.choice(makers)(depth - 1)

    def several(self, depth: int, count: int) -> list[Sample]:
        return [self.sample(self.random.randint(0, depth)) for _ in range(count)]

    def arithmetic(self, depth: int) -> Sample:
        operator = self.random.choice(("+", "-", "*", "/", "DIV", "%", "negate"))
        left, right = self.several(depth, 2)
        if operator == "negate":
            return Sample(f"(-({left.sql}))", call("negate", left.ours))
        return Sample(f"(({left.sql}) {operator} ({right.sql}))", call(operator.lower(), left.ours, right.ours))

    def bits(self, depth: int) -> Sample:
        operator = self.random.choice(("&", "|", "^", "<<", ">>", "~"))
        left, right = self.several(depth, 2)
        if operator == "~":
            return Sample(f"(~({left.sql}))", call("~", left.ours))
        return Sample(f"(({left.sql}) {operator} ({right.sql}))", call(operator, left.ours, right.ours))

    def comparison(self, depth: int) -> Sample:
        operator = self.random.choice(COMPARISONS)
        left, right = self.several(depth, 2)
        return Sample(f"(({left.sql}) {operator} ({right.sql}))", call(operator, left.ours, right.ours))

    def logic(self, depth: int) -> Sample:
        operator = self.random.choice(("AND", "OR", "XOR", "NOT"))
        left, right = self.several(depth, 2)
        if operator == "NOT":
            return Sample(f"(NOT ({left.sql}))", call("not", left.ours))
        return Sample(f"(({left.sql}) {operator} ({right.sql}))", call(operator.lower(), left.ours, right.ours))

    def membership(self, depth: int) -> Sample:
        negated = "NOT " if self.random.random() < 0.3 else ""
        value = self.sample(depth)
        if self.random.random() < 0.4:
            low, high = self.several(depth, 2)
            sql = f"(({value.sql}) {negated}BETWEEN ({low.sql}) AND ({high.sql}))"
            return Sample(sql, call(f"{negated.lower()}between", value.ours, low.ours, high.ours))
        items = [self.literal() for _ in range(self.random.randint(1, 4))]
        sql = f"(({value.sql}) {negated}IN ({', '.join(item.sql for item in items)}))"
        return Sample(sql, call(f"{negated.lower()}in", value.ours, *(item.ours for item in items)))

    def null_tests(self, depth: int) -> Sample:
        test = self.random.choice(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        negated = "NOT " if self.random.random() < 0.5 else ""
        value = self.sample(depth)
        return Sample(f"(({value.sql}) IS {negated}{test})", call(f"is {negated}{test}".lower(), value.ours))

    def pattern(self, depth: int) -> Sample:
        negated = "NOT " if self.random.random() < 0.3 else ""
        value = self.sample(self.random.randint(0, depth))
        operator = self.random.choice(("LIKE", "LIKE", "REGEXP"))
        chosen = self.random.choice(PATTERNS if operator == "LIKE" else REGEXPS)
        sql = f"(({value.sql}) {negated}{operator} {sql_literal(chosen, varchar())})"
        return Sample(sql, call(f"{negated}{operator}".lower(), value.ours, Literal(chosen, varchar(len(chosen)))))

    def choice(self, depth: int) -> Sample:
        name = self.random.choice(("CASE", "IF", "IFNULL", "NULLIF", "COALESCE", "GREATEST", "LEAST"))
        if name == "CASE":
            condition, one, other, two, last = self.several(depth, 5)
            sql = f"(CASE WHEN {condition.sql} THEN {one.sql} WHEN {other.sql} THEN {two.sql} ELSE {last.sql} END)"
            return Sample(sql, call("case", condition.ours, one.ours, other.ours, two.ours, last.ours))
        arguments = self.several(depth, {"IF": 3, "IFNULL": 2, "NULLIF": 2}.get(name, self.random.randint(2, 3)))
        return Sample(f"{name}({', '.join(a.sql for a in arguments)})", call(name.lower(), *(a.ours for a in arguments)))

    def cast(self, depth: int) -> Sample:
        sql, target = self.random.choice(CAST_TARGETS)
        value = self.sample(self.random.randint(0, depth))
        return Sample(f"CAST({value.sql} AS {sql})", cast(value.ours, target))

    def rows(self, depth: int) -> Sample:
        left, right = self.several(0, 2), self.several(0, 2)
        operator = self.random.choice(COMPARISONS)
        sql = f"(({left[0].sql}, {left[1].sql}) {operator} ({right[0].sql}, {right[1].sql}))"
        return Sample(sql, call(operator, call("row", *(a.ours for a in left)), call("row", *(a.ours for a in right))))

    def collated(self, depth: int) -> Sample:
        collation = self.random.choice(("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"))
        position = self.random.choice((7, 8, 9))
        operator = self.random.choice(COMPARISONS)
        value = self.random.choice(TEXTS)
        column = self.column(position)
        sql = f"({column.sql} COLLATE {collation} {operator} {sql_literal(value, varchar())})"
        return Sample(sql, call(operator, collate(column.ours, collation), Literal(value, varchar(len(value)))))
