"""Random statements over random tables, as SQL text.

A scenario is one table's life: CREATE, then writes and reads that mostly hit. What MariaDB
and MySQL answer differently by design, and what depends on the order in which a server
happens to find rows, is left out here, so that every difference seen is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.differential.model import (
    ColumnModel,
    TableModel,
    condition,
    literal,
    random_column,
    valid_literal,
    wild_literal,
)


@dataclass(frozen=True)
class Generated:
    """`ordered`: the rows must come in the same order. `approximate`: floats may differ in the last digits."""

    sql: str
    ordered: bool = False
    approximate: bool = False


def scenario(random: Random, name: str, statement_count: int) -> Iterator[Generated]:
    table, create = random_table(random, name)
    yield Generated(create)
    for _ in range(3):
        yield insert(random, table)
    for _ in range(statement_count - 4):
        draw = random.random()
        if draw < 0.3:
            yield insert(random, table)
        elif draw < 0.45:
            yield update(random, table)
        elif draw < 0.52:
            yield delete(random, table)
        elif draw < 0.7:
            yield aggregate(random, table)
        else:
            yield select(random, table)
    yield Generated(f"SELECT * FROM {name}")


def random_table(random: Random, name: str) -> tuple[TableModel, str]:
    columns = [random_column(random, f"c{number}") for number in range(random.randint(2, 7))]
    keyable = [column for column in columns if column.family not in ("TEXT", "BLOB")]
    clauses: list[str] = []
    primary: tuple[str, ...] = ()
    draw = random.random()
    if draw < 0.45:
        auto = random.random() < 0.7
        kind = random.choice(("INT", "BIGINT", "INT UNSIGNED", "SMALLINT"))
        sql = f"{kind} NOT NULL" + (" AUTO_INCREMENT" if auto else "")
        family = kind.split()[0]
        columns.insert(0, ColumnModel("id", family, sql, "UNSIGNED" in kind, nullable=False, auto_increment=auto))
        primary = ("id",)
    elif draw < 0.85 and keyable:
        chosen = random.sample(keyable, min(len(keyable), random.choice((1, 1, 2, 3))))
        primary = tuple(column.name for column in chosen)
        for column in chosen:
            position = columns.index(column)
            sql = column.sql.replace(" NULL", "") if column.nullable else column.sql
            sql = sql.replace(" DEFAULT", " NOT NULL DEFAULT") if column.nullable and " DEFAULT" in sql else sql
            if column.nullable and " DEFAULT" not in sql:
                sql += " NOT NULL"
            columns[position] = ColumnModel(
                column.name, column.family, sql, column.unsigned, column.length, column.scale, column.members, False, column.has_default
            )  # fmt: skip
    if primary:
        descending = ""
        clauses.append(f"PRIMARY KEY ({', '.join(part + descending for part in primary)})")
    names = [column.name for column in columns if column.family not in ("TEXT", "BLOB")]
    uniques: list[tuple[str, ...]] = []
    for number in range(random.choice((0, 0, 1, 1, 2))):
        if names:
            chosen_names = random.sample(names, min(len(names), random.choice((1, 1, 2))))
            uniques.append(tuple(chosen_names))
            clauses.append(f"UNIQUE KEY u{number} ({', '.join(chosen_names)})")
    for number in range(random.choice((0, 0, 1, 2))):
        if names:
            chosen_names = random.sample(names, min(len(names), random.choice((1, 1, 2))))
            clauses.append(f"KEY k{number} ({', '.join(chosen_names)})")
    lines = [f"{column.name} {column.sql}" for column in columns] + clauses
    collation = random.choice(("utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"))
    sql = f"CREATE TABLE {name} ({', '.join(lines)}) DEFAULT CHARSET=utf8mb4 COLLATE={collation}"
    return TableModel(name, tuple(columns), primary, tuple(uniques)), sql


def insert(random: Random, table: TableModel) -> Generated:
    verb = random.choice(("INSERT", "INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE"))
    columns = list(table.columns)
    if random.random() < 0.5:
        columns = [
            column for column in columns
            if random.random() < (0.2 if column.auto_increment or column.has_default or column.nullable else 0.97)
        ] or columns  # fmt: skip
    # a row of IGNORE with a bad value is fixed up as without strict mode, where the two servers differ
    wild = 0.0 if verb == "INSERT IGNORE" else 0.05
    target = f"{verb} INTO {table.name}"
    count = random.choice((1, 1, 1, 2, 3, 5))
    # which numbers a failing INSERT uses up depends on how far it came; not where all rows are alike
    numbered = random.random() < 0.6
    if count == 1 and random.random() < 0.15:
        sets = ", ".join(f"{column.name} = {_inserted(random, column, wild, numbered)}" for column in columns)
        sql = f"{target} SET {sets}"
    else:
        rows = ", ".join(
            "(" + ", ".join(_inserted(random, column, wild, numbered) for column in columns) + ")" for _ in range(count)
        )
        names = "" if columns == list(table.columns) and random.random() < 0.3 else f" ({', '.join(c.name for c in columns)})"
        sql = f"{target}{names} VALUES {rows}"
    if verb == "INSERT" and table.key_columns and random.random() < 0.3:
        # MariaDB does not ask for the default of a column that is assigned to here
        updated = random.choice([c for c in table.columns if not c.auto_increment and (c in columns or c.has_default or c.nullable)])
        value = random.choice((f"VALUES({updated.name})", valid_literal(random, updated), updated.name))
        if updated.family in ("INT", "BIGINT", "SMALLINT", "DECIMAL") and random.random() < 0.5:
            value = f"{updated.name} + 1"
        sql += f" ON DUPLICATE KEY UPDATE {updated.name} = {value}"
    return Generated(sql)


def _inserted(random: Random, column: ColumnModel, wild: float, numbered: bool) -> str:
    if column.auto_increment:
        return random.choice(("NULL", "0", "DEFAULT")) if numbered else str(random.randint(1, 40))
    if column.has_default and random.random() < 0.1:
        return "DEFAULT"
    return literal(random, column, wild)


def update(random: Random, table: TableModel) -> Generated:
    assignments = []
    for column in random.sample(table.columns, min(len(table.columns), random.choice((1, 1, 2)))):
        if column.auto_increment and random.random() < 0.8:
            continue
        value = valid_literal(random, column)
        draw = random.random()
        if draw < 0.04:
            value = wild_literal(random, column)
        elif draw < 0.1:
            value = "NULL" if column.nullable else value
        elif draw < 0.14:
            value = "DEFAULT" if column.has_default else value
        elif draw < 0.3 and column.is_exact and column.family != "YEAR":
            value = f"{column.name} {random.choice('+-*')} {random.randint(0, 3)}"
        elif draw < 0.4:
            twins = [other for other in table.columns if other.family == column.family and other.length <= column.length]
            value = random.choice(twins).name if twins else value
        elif draw < 0.45 and column.is_text:
            value = f"CONCAT({column.name}, 'x')"
        assignments.append(f"{column.name} = {value}")
    if not assignments:
        return select(random, table)
    sql = f"UPDATE {table.name} SET {', '.join(assignments)}"
    if random.random() < 0.85:
        sql += f" WHERE {condition(random, table)}"
    if table.primary_key:
        sql += f" ORDER BY {', '.join(table.primary_key)}"
        if random.random() < 0.3:
            sql += f" LIMIT {random.randint(0, 3)}"
    elif table.unique_keys:
        sql += f" ORDER BY {', '.join(column.name for column in table.columns)}"
    return Generated(sql)


def delete(random: Random, table: TableModel) -> Generated:
    sql = f"DELETE FROM {table.name}"
    if random.random() < 0.97:
        sql += f" WHERE {condition(random, table)}"
    if table.primary_key and random.random() < 0.4:
        sql += f" ORDER BY {', '.join(table.primary_key)} LIMIT {random.randint(0, 3)}"
    return Generated(sql)


def select(random: Random, table: TableModel) -> Generated:
    chosen = random.sample(table.columns, random.randint(1, len(table.columns)))
    outputs = "*" if random.random() < 0.4 else ", ".join(column.name for column in chosen)
    if outputs != "*" and random.random() < 0.3:
        outputs += ", " + _computed(random, random.choice(table.columns))
    sql = f"SELECT {outputs} FROM {table.name}"
    if random.random() < 0.85:
        sql += f" WHERE {condition(random, table)}"
    if table.primary_key and random.random() < 0.6:
        before = random.choice(table.columns)
        order = [f"{before.name}{random.choice(('', ' DESC'))}"] if random.random() < 0.6 else []
        order += [f"{name}{random.choice(('', '', ' DESC'))}" for name in table.primary_key]
        sql += f" ORDER BY {', '.join(order)}"
        if random.random() < 0.5:
            sql += f" LIMIT {random.randint(0, 5)}"
            if random.random() < 0.3:
                sql += f" OFFSET {random.randint(0, 4)}"
        return Generated(sql, ordered=True)
    return Generated(sql)


def _computed(random: Random, column: ColumnModel) -> str:
    if column.family in ("FLOAT", "BIGINT", "SET", "BIT"):
        return f"{column.name} IS NULL"
    if column.is_number:
        return random.choice((f"{column.name} + 1", f"-{column.name}", f"{column.name} * 2", f"ABS({column.name})", f"{column.name} = 1"))
    if column.is_text:
        name = column.name
        return random.choice((f"UPPER({name})", f"CONCAT({name}, '!')", f"CHAR_LENGTH({name})", f"LEFT({name}, 2)", f"IFNULL({name}, 'none')"))
    if column.family in ("DATE", "DATETIME"):
        return random.choice((f"YEAR({column.name})", f"MONTH({column.name})", f"DATE({column.name})"))
    return f"COALESCE({column.name}, {column.name})"


def aggregate(random: Random, table: TableModel) -> Generated:
    group = random.choice([c for c in table.columns if not c.is_text and c.family not in ("ENUM", "SET")] or [None])  # type: ignore[list-item]
    parts = ["COUNT(*)"]
    approximate = False
    for _ in range(random.randint(1, 3)):
        column = random.choice(table.columns)
        name = column.name
        if column.is_exact and column.family != "YEAR":
            parts.append(random.choice((
                f"SUM({name})", f"AVG({name})", f"MIN({name})", f"MAX({name})", f"COUNT(DISTINCT {name})", f"SUM(DISTINCT {name})",
            )))  # fmt: skip
        elif column.is_number and column.family != "YEAR":
            approximate = True
            parts.append(random.choice((f"MIN({name})", f"MAX({name})", f"SUM({name})", f"AVG({name})", f"STDDEV({name})")))
        elif column.family in ("DATE", "DATETIME", "TIMESTAMP", "TIME"):
            parts.append(random.choice((f"MIN({name})", f"MAX({name})", f"COUNT({name})")))
        else:
            parts.append(random.choice((f"COUNT({name})", f"COUNT(DISTINCT {name})")))
    where = f" WHERE {condition(random, table)}" if random.random() < 0.5 else ""
    if group is None or random.random() < 0.4:
        return Generated(f"SELECT {', '.join(parts)} FROM {table.name}{where}", approximate=approximate)
    having = f" HAVING COUNT(*) {random.choice('<>=')} {random.randint(1, 3)}" if random.random() < 0.3 else ""
    return Generated(
        f"SELECT {group.name}, {', '.join(parts)} FROM {table.name}{where} GROUP BY {group.name}{having} ORDER BY {group.name}",
        ordered=True,
        approximate=approximate,
    )
