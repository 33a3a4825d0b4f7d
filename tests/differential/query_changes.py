"""What happens to random queries and their tables over time: other constants, keys, and writes.

A write is the same on every server: which rows it changes does not depend on the order in
which they are found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from tests.differential.generator import Generated
from tests.differential.queries import QueryGenerator
from tests.differential.query_tables import VALUES, Item

KEYED = 0.4
"""So many of the queries ask for some values of one of their columns."""
STRANGE = 0.06
"""So many constants are NULL, or texts where a number was."""
JOINS_MAX = 10
"""Of more, some have millions of rows in between: MariaDB need not look at them, but a view keeps them."""
_LITERAL = r"(?:'[^']*'|-?\d+(?:\.\d+)?(?:e0)?|NULL)"
_COMPARED = rf"(?<=[=<>] ){_LITERAL}(?![\w.])|(?<=IN \(){_LITERAL}(?:, {_LITERAL})*(?=\))"
_LIMITS = r"(?<=LIMIT )\d+(?=$| OFFSET \d+$)|(?<=OFFSET )\d+$"
_FAMILIES = {value: family for family in reversed(VALUES) for value in VALUES[family]}


@dataclass(frozen=True)
class Shape:
    """A query, to be asked with several sets of constants."""

    statement: Generated
    is_prepared: bool = False

    def varied(self, random: Random) -> Shape:
        """The same with other constants, most of the same types."""
        others = {value: random.choice(VALUES[family]) for value, family in _FAMILIES.items() if "." not in value}
        strange = {value: random.choice(("NULL", f"'{other}'")) for value, other in others.items() if other.isdigit()}
        compared = others | {value: other for value, other in strange.items() if random.random() < STRANGE}

        def change(text: str) -> str:
            def changed(values: dict[str, str], place: str) -> str:
                return re.sub(_LITERAL, lambda found: values.get(found[0], found[0]), place)

            text = re.sub(_COMPARED, lambda place: changed(compared, place[0]), text)
            return re.sub(_LIMITS, lambda place: changed(others, place[0]), text)

        statement = replace(self.statement, sql=change(self.statement.sql), elsewhere=change(self.statement.elsewhere))
        return replace(self, statement=statement)

    def prepared(self) -> tuple[str, list[str]]:
        """Its text with `?` for constants, and what they are."""
        values: list[str] = []

        def take(found: re.Match[str]) -> str:
            values.append(found[0])
            return "?"

        places = f"{_COMPARED}|{_LIMITS}"
        return re.sub(places, lambda place: re.sub(_LITERAL, take, place[0]), self.statement.sql), values


def shapes(random: Random, tables: dict[str, list[Item]], count: int) -> list[Shape]:
    generator = QueryGenerator(random, tables)
    found = []
    for statement in generator.statements(count):
        if random.random() < KEYED:
            statement = _keyed(random, generator)
        if statement.sql.count("JOIN") <= JOINS_MAX:
            found.append(Shape(statement, is_prepared=random.random() < 0.5))
    return found


def _keyed(random: Random, generator: QueryGenerator) -> Generated:
    sql, columns, _ = generator.query(random.choice((0, 1, 1, 2)), [])
    known = [each for each in columns if each.family not in ("decimal", "double", "json")]
    if not known:
        return Generated(sql, approximate=True)
    conditions = []
    for column in random.sample(known, min(len(known), random.choice((1, 1, 2)))):
        values = VALUES[column.family]
        several = f"q.{column.sql} IN ({', '.join(random.sample(values, 2))})"
        conditions.append(random.choice((f"q.{column.sql} = {random.choice(values)}", several)))
    return Generated(f"SELECT * FROM ({sql}) AS q WHERE {' AND '.join(conditions)}", approximate=True)


def changes(random: Random, tables: dict[str, list[Item]]) -> list[str]:
    """One statement, or a transaction of several. Now and then a definition, which ends the table's views."""
    draw = random.random()
    if draw < 0.04:
        return [_definition(random, tables)]
    if draw < 0.7:
        return [_change(random, tables)]
    inside = [_change(random, tables) for _ in range(random.randint(2, 4))]
    return ["BEGIN", *inside, random.choice(("COMMIT", "COMMIT", "ROLLBACK"))]


def _definition(random: Random, tables: dict[str, list[Item]]) -> str:
    table = random.choice(list(tables))
    column = random.choice([each for each in tables[table] if each.family != "json"]).sql
    draw = random.random()
    if draw < 0.2:
        return f"TRUNCATE TABLE {table}"
    if draw < 0.5:
        return f"ALTER TABLE {table} {random.choice(('ADD COLUMN extra INT DEFAULT 3', 'ADD COLUMN extra INT FIRST', 'DROP COLUMN extra', 'MODIFY c0 BIGINT'))}"
    return f"CREATE INDEX i ON {table} ({column})" if draw < 0.8 else f"DROP INDEX i ON {table}"


def _value(random: Random, family: str) -> str:
    return "NULL" if random.random() < 0.12 else random.choice(VALUES[family])


def _row(random: Random, columns: list[Item]) -> str:
    values = [_value(random, each.family) for each in columns[1:]]
    return f"({random.randint(1, 18)}, {', '.join(values)})"


def _some(random: Random, columns: list[Item]) -> str:
    """A condition that some rows fulfil."""
    column = random.choice([each for each in columns[1:] if each.family != "json"])
    return random.choice(
        (
            f"id = {random.randint(1, 14)}",
            f"id IN ({random.randint(1, 14)}, {random.randint(1, 14)})",
            f"id > {random.randint(6, 14)}",
            f"{column.sql} = {random.choice(VALUES[column.family])}",
            f"{column.sql} IS NULL",
        )
    )


def _change(random: Random, tables: dict[str, list[Item]]) -> str:
    table = random.choice(list(tables))
    columns = tables[table]
    column, other = random.choice(columns[1:]), random.choice(columns[1:])
    rows = ", ".join(_row(random, columns) for _ in range(random.choice((1, 1, 2, 3))))
    named = f"{table} ({', '.join(each.sql for each in columns)})"
    second = random.choice(list(tables))
    on = random.choice([each.sql for each in tables[second] if each.family == "int"])
    match random.randrange(17):
        case 0 | 1 | 2:
            return f"INSERT INTO {named} VALUES {rows}"
        case 12 | 13:
            return f"REPLACE INTO {named} VALUES {rows}"
        case 14:
            return f"UPDATE {table} AS t JOIN {second} AS u ON t.id = u.{on} SET t.{column.sql} = {_value(random, column.family)} WHERE u.id > {random.randint(1, 14)}"
        case 15:
            join = random.choice((f"JOIN {second} AS u ON u.{on} = t.c0 WHERE u.id < 4", f"LEFT JOIN {second} AS u ON u.{on} = t.id WHERE u.id IS NULL AND t.id > 8"))
            return f"DELETE t FROM {table} AS t {join}"
        case 16:
            other_table = random.choice([each for each in tables if each != table])
            return f"UPDATE {table} SET c0 = (SELECT COUNT(*) FROM {other_table} AS u WHERE u.c0 = {table}.id) WHERE {_some(random, columns)}"
        case 3:
            return f"INSERT INTO {named} VALUES {rows} ON DUPLICATE KEY UPDATE {column.sql} = VALUES({column.sql})"
        case 4:
            names = ", ".join(each.sql for each in columns[1:])
            return f"INSERT IGNORE INTO {named} SELECT id + {random.randint(1, 6)}, {names} FROM {table} WHERE {_some(random, columns)}"
        case 5 | 6 | 7:
            assigned = f"{column.sql} = {_value(random, column.family)}"
            if other is not column:
                assigned += f", {other.sql} = {_value(random, other.family)}"
            return f"UPDATE {table} SET {assigned} WHERE {_some(random, columns)}"
        case 8 | 9:
            return f"UPDATE {table} SET id = {random.randint(1, 20)} WHERE id = {random.randint(1, 14)}"
        case 10:
            return f"DELETE FROM {table}" if random.random() < 0.1 else f"UPDATE {table} SET c0 = c0 + {random.randint(0, 1)}"
        case 11:
            return f"DELETE FROM {table} WHERE {_some(random, columns)}"
        case _:
            return f"DELETE FROM {table} WHERE id = {random.randint(1, 14)}"
