"""Random statements over random tables, as SQL text.

A scenario is one table's life: CREATE, then writes and reads that mostly hit. What MariaDB
and MySQL answer differently by design, and what depends on the order in which a server
happens to find rows, is left out here, so that every difference seen is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    """`ordered`: the rows must come in the same order. `approximate`: floats may differ in the last digits.

    `elsewhere` is the same in the words of a server that does not know those of `sql`.
    """

    sql: str
    ordered: bool = False
    approximate: bool = False
    elsewhere: str = ""

    @property
    def is_definition(self) -> bool:
        return self.sql.startswith(("ALTER", "CREATE", "TRUNCATE"))


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


def transactions(random: Random, name: str, statement_count: int) -> Iterator[Generated]:
    """As `scenario`, inside transactions with savepoints; a second look follows each end."""
    table, create = random_table(random, name)
    yield Generated(create)
    yield insert(random, table)
    yield insert(random, table)
    for _ in range(statement_count // 10):
        yield Generated("BEGIN")
        savepoints: list[str] = []
        for _ in range(7):
            draw = random.random()
            if draw < 0.15:
                savepoints.append(f"s{random.randint(1, 3)}")
                yield Generated(f"SAVEPOINT {savepoints[-1]}")
            elif draw < 0.25 and savepoints:
                yield Generated(f"ROLLBACK TO SAVEPOINT {random.choice(savepoints)}")
            elif draw < 0.28 and savepoints:
                yield Generated(f"RELEASE SAVEPOINT {random.choice(savepoints)}")
            elif draw < 0.5:
                yield insert(random, table)
            elif draw < 0.65:
                yield update(random, table)
            elif draw < 0.72:
                yield delete(random, table)
            else:
                yield select(random, table)
        yield Generated(random.choice(("COMMIT", "ROLLBACK")))
        yield Generated(f"SELECT * FROM {name}")


def alterations(random: Random, name: str, statement_count: int) -> Iterator[Generated]:
    """As `scenario`, while columns and indexes come and go."""
    table, create = random_table(random, name)
    while any(column.auto_increment for column in table.columns):  # an ALTER that copies rows forgets the numbers used up
        table, create = random_table(random, name)
    yield Generated(create)
    for number in range(statement_count // 8):
        for _ in range(3):
            yield insert(random, table)
        yield update(random, table)
        yield select(random, table)
        yield aggregate(random, table)
        table, sql = alteration(random, table, number)
        yield Generated(sql)
        yield Generated(f"SELECT * FROM {name}")


def alteration(random: Random, table: TableModel, number: int) -> tuple[TableModel, str]:
    draw = random.random()
    if draw < 0.35:
        column = random_column(random, f"a{number}")
        place = random.choice(("", " FIRST", f" AFTER {random.choice(table.columns).name}"))
        columns = list(table.columns)
        at = len(columns)
        if place:
            at = 0 if place == " FIRST" else 1 + next(n for n, c in enumerate(columns) if place.endswith(f" {c.name}"))
        if column.family in ("DATE", "DATETIME", "ENUM") and not column.nullable and not column.has_default:
            column = replace(column, sql=column.sql.replace(" NOT NULL", ""), nullable=True)
        columns.insert(at, column)
        return replace(table, columns=tuple(columns)), f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.sql}{place}"
    droppable = [column for column in table.columns if column.name.startswith("a") and column.name not in table.key_columns]
    if draw < 0.45 and droppable:
        gone = random.choice(droppable)
        columns = [column for column in table.columns if column is not gone]
        return replace(table, columns=tuple(columns)), f"ALTER TABLE {table.name} DROP COLUMN {gone.name}"
    keyable = [column for column in table.columns if column.family not in ("TEXT", "BLOB") and not column.name.startswith("a")]
    chosen = random.sample(keyable, min(len(keyable), random.choice((1, 1, 2)))) if keyable else []
    if not chosen:
        return table, f"TRUNCATE TABLE {table.name}"
    names = ", ".join(column.name for column in chosen)
    if draw < 0.7 or (draw < 0.9 and table.unique_keys):  # of two unique keys it is open which one ON DUPLICATE KEY UPDATE looks at first
        return table, f"CREATE INDEX i{number} ON {table.name} ({names})"
    if draw < 0.9:
        # it may fail; ON DUPLICATE KEY UPDATE and the order of updates do not need to know
        unique = tuple(column.name for column in chosen)
        return replace(table, unique_keys=(*table.unique_keys, unique)), f"CREATE UNIQUE INDEX i{number} ON {table.name} ({names})"
    return table, f"TRUNCATE TABLE {table.name}"


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
        clauses.append(f"PRIMARY KEY ({', '.join(_key_part(random, name) for name in primary)})")
    names = [column.name for column in columns if column.family not in ("TEXT", "BLOB")]
    if random.random() < 0.25:
        wide = [column for column in columns if column.is_text or column.is_binary]
        if wide:
            column = random.choice(wide)
            clauses.append(f"KEY p ({column.name}({random.randint(1, min(column.length or 9, 9))}))")
    bounded = [column for column in columns if column.is_exact and column.family != "YEAR" and not column.auto_increment]
    if bounded and random.random() < 0.2:
        clauses.append(f"CONSTRAINT small CHECK ({random.choice(bounded).name} < {random.choice((15, 100, 1000))})")
    uniques: list[tuple[str, ...]] = []
    for number in range(random.choice((0, 0, 1, 1, 2))):
        if names:
            chosen_names = random.sample(names, min(len(names), random.choice((1, 1, 2))))
            uniques.append(tuple(chosen_names))
            clauses.append(f"UNIQUE KEY u{number} ({', '.join(_key_part(random, name) for name in chosen_names)})")
    for number in range(random.choice((0, 0, 1, 2))):
        if names:
            chosen_names = random.sample(names, min(len(names), random.choice((1, 1, 2))))
            clauses.append(f"KEY k{number} ({', '.join(_key_part(random, name) for name in chosen_names)})")
    lines = [f"{column.name} {column.sql}" for column in columns] + clauses
    computed = [column for column in bounded if column.family != "BIGINT"]
    if computed and random.random() < 0.2:
        stored = random.choice(("STORED", "VIRTUAL"))
        lines.append(f"g DECIMAL(40,5) GENERATED ALWAYS AS ({random.choice(computed).name} * 2) {stored}")
    collation = random.choice(("utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_bin"))
    sql = f"CREATE TABLE {name} ({', '.join(lines)}) DEFAULT CHARSET=utf8mb4 COLLATE={collation}"
    has_check = any(clause.startswith("CONSTRAINT") for clause in clauses)
    return TableModel(name, tuple(columns), primary, tuple(uniques), has_check), sql


def _key_part(random: Random, name: str) -> str:
    return f"{name} DESC" if random.random() < 0.15 else name


def insert(random: Random, table: TableModel) -> Generated:
    if random.random() < 0.06:
        return copy(random, table)
    verb = random.choice(("INSERT", "INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE"))
    if table.has_check and verb == "INSERT IGNORE":
        verb = "INSERT"  # what violates a CHECK is ignored by MySQL, not always by MariaDB
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
        # NULL assigned to NULL counts as a change, in MariaDB
        value = valid_literal(random, updated)
        if not updated.nullable and random.random() < 0.4:
            value = f"VALUES({updated.name})"
        elif not updated.nullable and random.random() < 0.6:
            value = f"{updated.name} + 1" if updated.family in ("INT", "BIGINT", "SMALLINT", "DECIMAL") else updated.name
        sql += f" ON DUPLICATE KEY UPDATE {updated.name} = {value}"
    return Generated(sql)


def copy(random: Random, table: TableModel) -> Generated:
    """INSERT … SELECT of rows of the same table; numbers of bulk inserts have gaps that depend on the server."""
    columns = [column for column in table.columns if not column.auto_increment]
    if len(columns) < len(table.columns):
        return select(random, table)
    names = ", ".join(column.name for column in columns)
    order = f" ORDER BY {', '.join(table.primary_key)}" if table.primary_key else ""
    values = ", ".join(
        f"{c.name} + 1" if c.name in table.key_columns and c.family in ("INT", "DECIMAL") else c.name for c in columns
    )
    verb = random.choice(("INSERT", "REPLACE")) if order else "INSERT"
    return Generated(f"{verb} INTO {table.name} ({names}) SELECT {values} FROM {table.name} WHERE {condition(random, table)}{order} LIMIT {3 if order else 1000}")


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
        value = str(random.randint(1, 60)) if column.auto_increment else valid_literal(random, column)
        draw = random.random()
        if draw < 0.04 and not column.auto_increment:
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
    distinct = not any(column.is_text for column in table.columns) and random.random() < 0.15
    sql = f"SELECT {'DISTINCT ' if distinct else ''}{outputs} FROM {table.name}"
    if random.random() < 0.85:
        sql += f" WHERE {condition(random, table)}"
    if table.primary_key and not distinct and random.random() < 0.6:
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
            chosen = random.choice((
                f"SUM({name})", f"AVG({name})", f"BIT_XOR({name})", f"GROUP_CONCAT({name} ORDER BY {name})", f"MIN({name})", f"MAX({name})", f"COUNT(DISTINCT {name})", f"SUM(DISTINCT {name})",
            ))  # fmt: skip
            # MariaDB's bits of a DECIMAL UNSIGNED beyond 63 bits depend on how it happens to group.
            parts.append(f"SUM({name})" if chosen.startswith("BIT_XOR") and column.family == "DECIMAL" and column.unsigned else chosen)
        elif column.is_number and column.family != "YEAR":
            approximate = True
            parts.append(random.choice((f"MIN({name})", f"MAX({name})", f"SUM({name})", f"AVG({name})", f"BIT_XOR({name})", f"GROUP_CONCAT({name} ORDER BY {name})", f"STDDEV({name})")))
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
