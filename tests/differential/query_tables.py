"""Random tables for random queries: all types, many NULLs, texts that only a collation calls equal."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

TABLES = ("ta", "tb", "tc", "td")
ROWS = 11
TYPES = {
    "int": ("INT", "BIGINT", "TINYINT", "SMALLINT UNSIGNED"),
    "decimal": ("DECIMAL(8,2)", "DECIMAL(12,3)"),
    "double": ("DOUBLE",),
    "ci": (
        "VARCHAR(10) COLLATE utf8mb4_general_ci", "CHAR(8) COLLATE utf8mb4_general_ci",
        "VARCHAR(10) CHARACTER SET latin1", "VARCHAR(10) CHARACTER SET utf8mb3",
    ),
    "bin": ("VARCHAR(10) COLLATE utf8mb4_bin", "VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_bin"),
    "date": ("DATE",),
    "datetime": ("DATETIME",),
    "enum": ("ENUM('red','green','blue') COLLATE utf8mb4_bin",),
    "set": ("SET('red','green','blue') COLLATE utf8mb4_bin",),
    "time": ("TIME",),
    "year": ("YEAR",),
    "bit": ("BIT(3)", "BIT(9)"),
    "json": ("JSON",),
}
VALUES = {
    "int": ("0", "1", "2", "3", "4", "5", "7"),
    "decimal": ("0", "1", "1.50", "2", "2.25", "3", "-1.5"),
    "double": ("0", "1", "1.5", "2", "2.25", "3e0", "-1.5"),
    "ci": ("'a'", "'A'", "'b'", "'É'", "'e'", "'abc'", "'ABC'", "''", "'a\\t'", "'a \\t'", "'a '"),
    "bin": ("'a'", "'A'", "'b'", "'É'", "'e'", "'abc'", "'ABC'", "''", "'a\\t'", "'a \\t'"),
    "date": ("'2020-01-01'", "'2020-01-02'", "'2021-06-15'", "'1999-12-31'"),
    "datetime": ("'2020-01-01 00:00:00'", "'2020-01-02 10:00:00'", "'2021-06-15 00:00:00'", "'2020-01-01 00:00:01'"),
    "enum": ("'red'", "'green'", "'blue'"),
    "set": ("'red'", "'red,blue'", "''", "'green'", "'red,green,blue'"),
    "time": ("'10:00:00'", "'00:00:00'", "'01:30:00'", "'23:59:59'"),
    "year": ("1999", "2000", "2020", "2021"),
    "bit": ("b'0'", "b'1'", "b'101'", "b'111'"),
    "json": ("""'{"a": 1, "t": "a"}'""", """'{"a": 2}'""", """'{"t": "A"}'""", "'[1, 2]'", """'{"a": 2.5, "t": "abc"}'""", "'{}'"),
}
WRITTEN_OTHERWISE = {
    "int": ("0x02", "b'11'", "0x00", "TRUE"), "bit": ("0x05", "1", "7"), "year": ("99", "'20'", "2020"), "bin": ("0x61", "x'414243'", "_latin1'a'", "_utf8mb4 0xC389"),
    "ci": ("_latin1'A'", "_latin1 0xC9", "_latin1'e'", "_utf8mb3'b'", "_utf8mb3'ABC'"),
}  # fmt: skip
"""More constants to compare with: bytes as digits, years of two digits, texts with introducers."""
COMPARABLE = {
    "int": ("int", "int", "int", "decimal", "double"), "decimal": ("decimal", "int", "double"),
    "double": ("double", "int", "decimal"), "ci": ("ci", "ci", "bin"), "bin": ("bin", "bin", "ci"), "date": ("date", "datetime"),
    "datetime": ("datetime", "date"), "enum": ("enum",), "set": ("set", "enum"), "time": ("time",), "year": ("year", "int"), "bit": ("bit", "int"),
}  # fmt: skip
NUMBERS = ("int", "decimal", "double")


@dataclass(frozen=True)
class Item:
    """An expression in sight: its text and family. `shown`: equal values of it look equal."""

    sql: str
    family: str

    @property
    def is_shown(self) -> bool:
        return self.family != "ci"

    def under(self, alias: str) -> list[Item]:
        """What a query reads of the column: of a document its parts, which MariaDB, where it is a text, finds the same."""
        name = f"{alias}.{self.sql}"
        if self.family != "json":
            return [Item(name, self.family)]
        return [
            Item(f"JSON_LENGTH({name})", "int"),
            Item(f"(CAST(JSON_UNQUOTE(JSON_EXTRACT({name}, '$.t')) AS CHAR) COLLATE utf8mb4_bin)", "bin"),
            Item(f"(JSON_EXTRACT({name}, '$.a') + 0e0)", "double"),
            Item(f"JSON_CONTAINS_PATH({name}, 'one', '$.a', '$.t')", "int"),
        ]


def definitions(random: Random) -> tuple[list[str], dict[str, list[Item]]]:
    """CREATE and INSERT of all tables, and their columns."""
    statements: list[str] = []
    columns: dict[str, list[Item]] = {}
    for table in TABLES:
        found = [Item("id", "int")]
        lines = ["id INT NOT NULL PRIMARY KEY"]
        families = ["int", random.choice(("ci", "bin")), *random.choices(list(TYPES), k=random.randint(2, 4))]
        for number, family in enumerate(families):
            null = random.choice(("", "", " NOT NULL"))
            lines.append(f"c{number} {random.choice(TYPES[family])}{null}")
            found.append(Item(f"c{number}", family))
        keyed = [number for number, family in enumerate(families) if family != "json"]
        for number in random.sample(keyed, random.randint(0, 2)):
            lines.append(f"KEY k{number} (c{number})")
        statements.append(f"CREATE TABLE {table} ({', '.join(lines)}) DEFAULT CHARSET=utf8mb4")
        rows = []
        for key in random.sample(range(1, 13), ROWS if random.random() < 0.9 else 0):
            values = [str(key)]
            for number, family in enumerate(families):
                required = lines[number + 1].endswith("NOT NULL")
                values.append("NULL" if not required and random.random() < 0.25 else random.choice(VALUES[family]))
            rows.append(f"({', '.join(values)})")
        if rows:
            statements.append(f"INSERT INTO {table} VALUES {', '.join(rows)}")
        columns[table] = found
    return statements, columns


def recursive(random: Random, tables: dict[str, list[Item]]) -> str:
    """Numbers reached from one column over others, each once."""
    first, following = random.choice(TABLES), random.choice(TABLES)
    start = random.choice([each.sql for each in tables[first] if each.family == "int"])
    on, to = random.choices([each.sql for each in tables[following] if each.family == "int"], k=2)
    step = random.choice((f"t.{to}", f"t.{to}", f"t.{to} + 1", "r.n % 5 + 1"))
    tail = random.choice(("", " WHERE r.n > 1", " WHERE EXISTS (SELECT 1 FROM ta AS e WHERE e.id = r.n)"))
    query = f"SELECT s.{start} AS n FROM {first} AS s UNION SELECT {step} FROM {following} AS t JOIN r ON t.{on} = r.n WHERE r.n < 20"
    return f"WITH RECURSIVE r AS ({query}) SELECT r.n, COUNT(x.id) FROM r LEFT JOIN tb AS x ON x.id = r.n{tail} GROUP BY r.n"


def quotients(random: Random, columns: list[Item]) -> list[Item]:
    """Divisions, to be compared with each other, grouped by and aggregated."""
    exact = [each for each in columns if each.family in ("int", "decimal") and "JSON_CONTAINS" not in each.sql]  # MariaDB groups its NULL as 0
    exact = [each for each in exact if ".o" not in each.sql]  # a quotient of a derived table is rounded, where it is not merged
    if len(exact) < 2 or random.random() < 0.6:
        return []
    pairs = [random.sample(exact, 2) for _ in range(2)]
    return [Item(f"({one.sql} / {other.sql})", "decimal") for one, other in pairs]
