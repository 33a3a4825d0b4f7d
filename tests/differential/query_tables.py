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
    "ci": ("VARCHAR(10) COLLATE utf8mb4_general_ci", "CHAR(8) COLLATE utf8mb4_general_ci"),
    "bin": ("VARCHAR(10) COLLATE utf8mb4_bin",),
    "date": ("DATE",),
    "datetime": ("DATETIME",),
    "enum": ("ENUM('red','green','blue') COLLATE utf8mb4_bin",),
}
VALUES = {
    "int": ("0", "1", "2", "3", "4", "5", "7"),
    "decimal": ("0", "1", "1.50", "2", "2.25", "3", "-1.5"),
    "double": ("0", "1", "1.5", "2", "2.25", "3e0", "-1.5"),
    "ci": ("'a'", "'A'", "'b'", "'É'", "'e'", "'abc'", "'ABC'", "''"),
    "bin": ("'a'", "'A'", "'b'", "'É'", "'e'", "'abc'", "'ABC'", "''"),
    "date": ("'2020-01-01'", "'2020-01-02'", "'2021-06-15'", "'1999-12-31'"),
    "datetime": ("'2020-01-01 00:00:00'", "'2020-01-02 10:00:00'", "'2021-06-15 00:00:00'", "'2020-01-01 00:00:01'"),
    "enum": ("'red'", "'green'", "'blue'"),
}
COMPARABLE = {
    "int": ("int", "int", "int", "decimal", "double"), "decimal": ("decimal", "int", "double"),
    "double": ("double", "int", "decimal"), "ci": ("ci",), "bin": ("bin",), "date": ("date", "datetime"),
    "datetime": ("datetime", "date"), "enum": ("enum",),
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
        for number in random.sample(range(len(families)), random.randint(0, 2)):
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
