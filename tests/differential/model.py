"""What the generator knows of a table, and random values and conditions that fit its columns.

Only text comes out: the statements run through anything that speaks MySQL. Everything is
drawn from one `random.Random`, so a seed names a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from random import Random

INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
WORDS = (
    "", "a", "A", "b", "ab", "Ab", "abc", "abd", "zebra", "Zoo", "hello world", "x y", "0", "1", "12", "-7", "3.5",
    "o''clock", "per%cent", "under_score", "back\\\\slash", "äöü", "日本", "naïve", "long enough to be cut somewhere",
)  # fmt: skip
DATES = (
    "2000-01-01", "1999-12-31", "2024-02-29", "1970-01-02", "2038-01-18", "2010-06-15", "1000-01-01", "9999-12-31",
)  # fmt: skip
TIMES = ("00:00:00", "23:59:59", "12:30:45", "01:02:03", "838:59:59", "-05:06:07", "100:00:00")


@dataclass(frozen=True)
class ColumnModel:
    name: str
    family: str
    sql: str
    unsigned: bool = False
    length: int = 0
    scale: int = 0
    members: tuple[str, ...] = ()
    nullable: bool = True
    has_default: bool = False
    auto_increment: bool = False

    @property
    def is_exact(self) -> bool:
        """Sums do not depend on the order of the rows."""
        return self.family in INTEGER_BITS or self.family in ("DECIMAL", "YEAR")

    @property
    def is_number(self) -> bool:
        return self.is_exact or self.family in ("FLOAT", "DOUBLE")

    @property
    def is_text(self) -> bool:
        return self.family in ("CHAR", "VARCHAR", "TEXT")

    @property
    def is_binary(self) -> bool:
        return self.family in ("BINARY", "VARBINARY", "BLOB")


@dataclass(frozen=True)
class TableModel:
    name: str
    columns: tuple[ColumnModel, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...] = ()
    has_check: bool = False

    def column(self, name: str) -> ColumnModel:
        return next(column for column in self.columns if column.name == name)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Each once, in an order that does not depend on the process."""
        return tuple(dict.fromkeys((*self.primary_key, *chain.from_iterable(self.unique_keys))))


def random_column(random: Random, name: str) -> ColumnModel:
    family = random.choice((
        "TINYINT", "SMALLINT", "INT", "INT", "INT", "BIGINT", "MEDIUMINT", "DECIMAL", "DECIMAL", "FLOAT", "DOUBLE",
        "DATE", "DATETIME", "TIMESTAMP", "TIME", "YEAR", "CHAR", "VARCHAR", "VARCHAR", "VARCHAR", "TEXT", "BINARY",
        "VARBINARY", "BLOB", "ENUM", "SET", "BIT",
    ))  # fmt: skip
    unsigned = False
    length = scale = 0
    members: tuple[str, ...] = ()
    declaration = family
    if family in INTEGER_BITS:
        unsigned = random.random() < 0.3
        declaration += " UNSIGNED" if unsigned else ""
    elif family == "DECIMAL":
        scale = random.choice((0, 2, 2, 5))
        length = random.choice((5, 10, 18, 30))
        unsigned = random.random() < 0.2
        declaration = f"DECIMAL({length},{scale})" + (" UNSIGNED" if unsigned else "")
    elif family in ("DATETIME", "TIMESTAMP", "TIME"):
        scale = random.choice((0, 0, 3, 6))
        declaration += f"({scale})" if scale else ""
    elif family in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        length = random.choice((1, 5, 20, 20, 50))
        declaration = f"{family}({length})"
    elif family in ("ENUM", "SET"):
        members = ("red", "green", "blue", "x y")
        declaration = f"{family}({','.join(repr(member) for member in members)})"
    elif family == "BIT":
        length = random.choice((1, 8, 20, 64))
        declaration = f"BIT({length})"
    nullable = random.random() < 0.65
    column = ColumnModel(name, family, declaration, unsigned, length, scale, members, nullable)
    sql = declaration + ("" if nullable else " NOT NULL")
    if family == "TIMESTAMP" and nullable:
        sql = f"{declaration} NULL"
    has_default = False
    if random.random() < 0.3 and family not in ("TEXT", "BLOB"):
        has_default = True
        precision = f"({scale})" if scale else ""
        if family in ("DATETIME", "TIMESTAMP") and random.random() < 0.0:
            sql += f" DEFAULT CURRENT_TIMESTAMP{precision}"
        else:
            sql += f" DEFAULT {valid_literal(random, column)}"
    elif family == "TIMESTAMP":
        # without one, MariaDB and MySQL differ on what the first timestamp of a table is given
        has_default = True
        sql += " DEFAULT '2001-02-03 04:05:06'"
    return ColumnModel(name, family, sql, unsigned, length, scale, members, nullable, has_default)


def valid_literal(random: Random, column: ColumnModel) -> str:
    """SQL text of a value that the column takes without complaint."""
    family = column.family
    if family in INTEGER_BITS:
        bits = INTEGER_BITS[family]
        low, high = (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if random.random() < 0.75:
            low, high = max(low, -5), min(high, 20)
        elif random.random() < 0.5:
            return str(random.choice((low, high)))
        number = random.randint(low, high)
        return f"'{number}'" if random.random() < 0.1 else str(number)
    if family == "DECIMAL":
        digits = column.length - column.scale
        whole = random.randint(0, 10 ** min(digits, random.choice((1, 2, 9, 28))) - 1) if digits else 0
        sign = "" if column.unsigned or random.random() < 0.6 else "-"
        fraction = str(random.randint(0, 10**column.scale - 1)).zfill(column.scale) if column.scale else ""
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
    if family in ("FLOAT", "DOUBLE"):
        return random.choice(("0", "1.5", "-2.25", "1e10", "-3e-5", "100", "0.1", "3.14159", "'7.5'"))
    if family == "YEAR":
        return random.choice(("1901", "2155", "2000", "2024", "1970", "'2069'", "0"))
    if family == "BIT":
        return str(random.randint(0, 2 ** min(column.length, random.choice((1, 4, 64))) - 1))
    if family in ("ENUM", "SET"):
        choice = random.choice(column.members)
        if family == "SET" and random.random() < 0.4:
            choice = ",".join(random.sample(column.members, random.randint(0, 3)))
        return f"'{choice}'"
    if family == "DATE":
        return f"'{random.choice(DATES)}'"
    if family in ("DATETIME", "TIMESTAMP"):
        days = DATES if family == "DATETIME" else DATES[:6]
        fraction = random.choice(("", "", ".5", ".123456"))
        return f"'{random.choice(days)} {random.choice(TIMES[:4])}{fraction if days is not DATES else ''}'"
    if family == "TIME":
        return f"'{random.choice(TIMES)}'"
    word = random.choice(WORDS)
    if random.random() < 0.3:
        word += random.choice(WORDS)
    plain = word.replace("\\\\", "\\").replace("''", "'")
    limit = column.length if column.length else 10_000
    if column.is_binary:
        while len(plain.encode()) > limit:
            plain = plain[:-1]
    else:
        plain = plain[:limit]
    if family == "CHAR":
        plain = plain.rstrip()
    return "'" + plain.replace("\\", "\\\\").replace("'", "''") + "'"


def wild_literal(random: Random, column: ColumnModel) -> str:
    """SQL text of a value that may not fit the column."""
    if column.family in ("FLOAT", "DOUBLE"):
        return random.choice(("'abc'", "'1.5x'", "1e39", "''", "'2000-01-01'"))
    if column.is_number:
        return random.choice((
            "999", "-1", "70000", "1e30", "99999999999999999999999", "'abc'", "'12abc'", "1.5", "2.499", "-0.5", "''",
            "'5'", "'1e2'", "' 7'", "12345.678", "TRUE",
        ))  # fmt: skip
    if column.family in ("DATE", "DATETIME", "TIMESTAMP", "TIME"):
        return random.choice((
            "'2000-13-01'", "'2001-02-29'", "'abc'", "''", "'20240229'", "'2024-2-3'", "'2024-02-29 10:11:12'",
            "'0000-00-00'", "'2000-00-10'", "'1969-12-31 23:59:59'",
        ))  # fmt: skip
    if column.family in ("ENUM", "SET"):
        return random.choice(("'purple'", "''", "0", "99", "'RED'", "'red,'"))
    if column.family == "BIT":
        return random.choice(("256", "-1", "b'101'", "1.7"))
    return random.choice((
        "'a string that is much too long for the small columns of this table, and then some more'",
        "12", "1.50", "'trailing  '", "TRUE", "1e3",
    ))  # fmt: skip


def literal(random: Random, column: ColumnModel, wild: float = 0.06) -> str:
    draw = random.random()
    if draw < wild:
        return wild_literal(random, column)
    if draw < wild + (0.1 if column.nullable else 0.0 if column.family == "TIMESTAMP" else 0.015):
        return "NULL"
    return valid_literal(random, column)


def condition(random: Random, table: TableModel, depth: int = 0) -> str:
    draw = random.random()
    if depth < 2 and draw < 0.3:
        joint = random.choice(("AND", "AND", "OR"))
        return f"({condition(random, table, depth + 1)} {joint} {condition(random, table, depth + 1)})"
    if depth < 2 and draw < 0.34:
        return f"NOT ({condition(random, table, depth + 1)})"
    keys = [table.column(name) for name in table.key_columns]
    column = random.choice(keys if keys and random.random() < 0.5 else table.columns)
    draw = random.random()
    if draw < 0.1 and (column.nullable or column.family not in ("DATE", "DATETIME")):
        # IS NULL of a NOT NULL date finds zero dates, in MariaDB
        return f"{column.name} IS {random.choice(('', 'NOT '))}NULL"
    if column.family in ("ENUM", "SET", "BIT"):
        return f"{column.name} {random.choice(('=', '<>'))} {valid_literal(random, column)}"
    if draw < 0.25:
        values = ", ".join(valid_literal(random, column) for _ in range(random.randint(1, 4)))
        return f"{column.name} {random.choice(('', '', 'NOT '))}IN ({values})"
    if draw < 0.35 and column.family != "TIME":
        low, high = valid_literal(random, column), valid_literal(random, column)
        return f"{column.name} BETWEEN {low} AND {high}"
    if draw < 0.45 and column.is_text:
        pattern = random.choice(("a%", "%b%", "_", "%", "Z__", "%\\\\_%", "ab%"))
        return f"{column.name} {random.choice(('', 'NOT '))}LIKE '{pattern}'"
    if draw < 0.5 and column.is_number and column.family not in ("FLOAT", "BIGINT") and not column.unsigned:
        # A YEAR of 0 minus 1 is out of range, if it is computed: the condition beside it may rule that out before.
        operator = random.choice("+*" if column.family == "YEAR" else "+-*")
        return f"{column.name} {operator} {random.randint(1, 3)} {random.choice('<>=')} {random.randint(0, 10)}"
    if draw < 0.55 and column.is_number:
        others = [other for other in table.columns if other.is_number]
        return f"{column.name} {random.choice(('=', '<', '>='))} {random.choice(others).name}"
    if draw < 0.6:
        return f"{valid_literal(random, column)} {random.choice(('=', '<', '>'))} {column.name}"
    operator = random.choice(("=", "=", "=", "<", ">", "<=", ">=", "<>", "<=>"))
    return f"{column.name} {operator} {valid_literal(random, column)}"
