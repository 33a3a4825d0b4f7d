"""Random SELECTs over random tables, nested up to a depth, as SQL text.

What depends on the order in which a server happens to find rows is left out: a LIMIT comes
with an order that decides, and texts that only a collation calls equal are never what a group
or a DISTINCT shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.differential.generator import Generated
from tests.differential.query_tables import (
    COMPARABLE,
    NUMBERS,
    TABLES,
    TYPES,
    VALUES,
    WRITTEN_OTHERWISE,
    Item,
    quotients,
    recursive,
)


def _ids(columns: list[Item]) -> list[str]:
    """The keys of all tables in sight, or nothing if some have none."""
    names = {each.sql for each in columns}
    found = [f"{alias}.id" for alias in dict.fromkeys(alias for each in columns for alias in re.findall(r"\bx\d+(?=\.)", each.sql))]
    return found if names.issuperset(found) else []


def _plain(value: str, family: str) -> str:
    if family == "bit":
        return "5"
    return value if value in VALUES[family] else VALUES[family][0]


def _shared(left: list[Item], right: list[Item]) -> bool:
    """Whether each side is one table, so that USING finds each name once."""
    return all(len({each.sql.split(".")[0] for each in side if each.sql.startswith("x")}) == 1 and len(_ids(side)) == 1 for side in (left, right))


class QueryGenerator:
    def __init__(self, random: Random, tables: dict[str, list[Item]]) -> None:
        self._random = random
        self._tables = tables
        self._aliases = 0
        self._common: list[tuple[str, list[Item]]] = []

    def statements(self, count: int) -> Iterator[Generated]:
        random = self._random
        for _ in range(count):
            draw = random.random()
            depth = random.choice((0, 1, 1, 2, 2, 3))
            if draw < 0.06:
                yield Generated(self._windowed(depth), approximate=True)
            elif draw < 0.08:
                yield Generated(self._windowed_groups(depth), approximate=True)
            elif draw < 0.12:
                yield self._with_common_tables(depth)
            elif draw < 0.15:
                yield self._lateral(depth)
            elif draw < 0.17:
                yield Generated(recursive(random, self._tables))
            else:
                sql, _, ordered = self.query(depth, [], top=True)
                yield Generated(sql, ordered=ordered, approximate=True)

    def _windowed(self, depth: int) -> str:
        """One window over one FROM: MariaDB has its troubles with several."""
        random = self._random
        source, columns = self._from(depth, [])
        shown = [each for each in columns if each.is_shown] or [Item("1", "int")]
        partition = f"PARTITION BY {random.choice(shown).sql} " if random.random() < 0.6 else ""
        order = random.choice(shown).sql
        number = self._of_family(columns, "int").sql
        if random.random() < 0.4:
            one, other = self._of_family(columns, "int").sql, self._of_family(columns, "int").sql
            number = random.choice((f"({one} + {other})", f"COALESCE({one}, {other}, 0)", f"(-{one})"))
        functions = [f"RANK() OVER ({partition}ORDER BY {order})", f"DENSE_RANK() OVER ({partition}ORDER BY {order} DESC)"]
        functions += [f"{name}({number}) OVER ({partition}ORDER BY {order})" for name in ("SUM", "COUNT", "MIN", "MAX")]
        reach = random.choice(("2 PRECEDING", "BETWEEN 1 PRECEDING AND 2 FOLLOWING", "BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"))
        turned = random.choice(("", " DESC"))
        functions += [f"{name}({number}) OVER ({partition}ORDER BY {number}{turned} RANGE {reach})" for name in ("SUM", "COUNT")]
        if ids := _ids(columns):
            every = f"{partition}ORDER BY {order}{turned}, {', '.join(ids)}"
            functions += [f"ROW_NUMBER() OVER ({every})", f"NTILE(3) OVER ({every})"]
            functions += [f"{name}({random.choice(shown).sql}) OVER ({every})" for name in ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE")]
        functions += [f"COUNT(*) OVER ({partition.strip()})", f"SUM({number}) OVER ({partition.strip()})"]
        where = f" WHERE {self._condition(depth, columns, [])}" if random.random() < 0.5 else ""
        return f"SELECT {random.choice(shown).sql} AS o0, {random.choice(functions)} AS o1 FROM {source}{where}"

    def _windowed_groups(self, depth: int) -> str:
        """A window whose rows are groups."""
        random = self._random
        source, columns = self._from(depth, [])
        key = random.choice([each.sql for each in columns if each.is_shown and "(" not in each.sql] or ["1"])
        value = random.choice(("COUNT(*)", f"COUNT({random.choice(columns).sql})", f"MAX({self._of_family(columns, 'int').sql})"))
        window = random.choice((
            f"RANK() OVER (ORDER BY {value}, {key})", f"SUM({value}) OVER (ORDER BY {key})", f"SUM({value}) OVER ()", f"DENSE_RANK() OVER (ORDER BY {value} DESC)",
            f"LAG({value}) OVER (ORDER BY {key})", f"MAX({value}) OVER (ORDER BY {key} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        ))  # fmt: skip
        where = f" WHERE {self._condition(depth, columns, [])}" if random.random() < 0.5 else ""
        having = random.choice(("", "", " HAVING COUNT(*) > 1"))
        return f"SELECT {key} AS o0, {value} AS o1, {window} AS o2 FROM {source}{where} GROUP BY {key}{having}"

    def _with_common_tables(self, depth: int) -> Generated:
        """A query over common table expressions; the second may use the first."""
        clauses: list[str] = []
        for number in range(self._random.randint(1, 2)):
            sql, columns, _ = self.query(max(depth - 1, 0), [])
            clauses.append(f"w{number} AS ({sql})")
            self._common.append((f"w{number}", columns))
        sql, _, ordered = self.query(depth, [], top=True)
        self._common.clear()
        return Generated(f"WITH {', '.join(clauses)} {sql}", ordered=ordered, approximate=True)

    def _lateral(self, depth: int) -> Generated:
        """A derived table that reads the table before it. MariaDB has none: its values are subqueries there."""
        random = self._random
        source, columns = self._from(0, [])
        inner, found = self._from(max(depth - 1, 0), columns)
        where = f" WHERE {self._condition(max(depth - 1, 0), found, columns)}"
        values = [self._aggregate(found).sql for _ in range(random.randint(1, 2))]
        shown = random.sample(columns, min(2, len(columns)))
        kept = [f"{each.sql} AS o{number}" for number, each in enumerate(shown)]
        named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
        join = random.choice((", LATERAL", " JOIN LATERAL", " LEFT JOIN LATERAL"))
        on = " ON TRUE" if "LEFT" in join else ""
        read = ", ".join(f"l.v{number}" for number in range(len(values)))
        return Generated(
            f"SELECT {', '.join(kept)}, {read} FROM {source}{join} (SELECT {named} FROM {inner}{where}) AS l{on}",
            approximate=True,
            elsewhere=f"SELECT {', '.join([*kept, *(f'(SELECT {value} FROM {inner}{where})' for value in values)])} FROM {source}",
        )

    # -- whole queries

    def query(
        self, depth: int, outer: list[Item], top: bool = False, wanted: list[str] | None = None
    ) -> tuple[str, list[Item], bool]:
        """SQL, its output columns under the names o0, o1 …, and whether it is ordered."""
        random = self._random
        if wanted is None and depth > 0 and random.random() < 0.12:
            return self._set_operation(depth, outer, top)
        source, columns = self._from(depth, outer)
        where = f" WHERE {self._condition(depth, columns, outer)}" if random.random() < 0.6 else ""
        draw = random.random()
        grouped = draw < 0.3
        if grouped:
            outputs, tail = self._grouped(depth, columns, outer, wanted)
        else:
            outputs, tail = self._plain_outputs(depth, columns, outer, wanted), ""
        # MariaDB forgets the OFFSET of a DISTINCT that selects constants only.
        varies = any(each in columns for each in outputs)
        distinct = varies and random.random() < 0.2 and "ROLLUP" not in tail and all(each.is_shown for each in outputs)
        # Equal averages MariaDB may show twice, bits as digits.
        distinct = distinct and not any("AVG(" in each.sql or "VAR_POP(" in each.sql or each.family == "bit" for each in outputs)
        if distinct and grouped and len(outputs) > 1 and wanted is None:
            outputs = outputs[1:]  # what is left may be the same for several groups
        named = [f"{each.sql} AS o{number}" for number, each in enumerate(outputs)]
        sql = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(named)} FROM {source}{where}{tail}"
        ordered = False
        decided = all(each.is_shown and each.family != "double" for each in outputs) and "ROLLUP" not in tail
        # MariaDB sorts ANY and ALL as if they were never NULL.
        decided = decided and not any(word in each.sql for each in outputs for word in ("ANY (", "SOME (", "ALL ("))
        ids = [] if grouped or distinct or wanted is not None else _ids(columns)
        if ids and random.random() < 0.25:  # by a column that need not be shown, whose equal values only the ids tell apart
            sql += f" ORDER BY {random.choice(columns).sql}{random.choice(('', ' DESC'))}, {', '.join(ids)}"
            ordered = True
            if not top or random.random() < 0.8:
                sql += f" LIMIT {random.randint(1, 5)}" + (f" OFFSET {random.randint(0, 3)}" if random.random() < 0.4 else "")
        elif (top and random.random() < 0.4 and decided) or (not top and wanted is None and decided and random.random() < 0.15):
            items = [f"{number}{random.choice(('', ' DESC'))}" for number in range(1, len(outputs) + 1)]
            sql += f" ORDER BY {', '.join(items)}"
            ordered = True
            if not top or random.random() < 0.6:
                sql += f" LIMIT {random.randint(1, 5)}" + (f" OFFSET {random.randint(0, 3)}" if random.random() < 0.4 else "")
        return sql, [Item(f"o{number}", each.family) for number, each in enumerate(outputs)], ordered

    def _set_operation(self, depth: int, outer: list[Item], top: bool) -> tuple[str, list[Item], bool]:
        random = self._random
        families = random.choices([each for each in TYPES if each not in ("ci", "json")], k=random.randint(1, 3))
        operator = random.choice(("UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        branches = [self.query(depth - 1, outer, wanted=families)[0] for _ in range(2)]
        if random.random() < 0.4:
            branches = [self._first_rows(branch, families) for branch in branches]
        sql = f" {operator} ".join(branches)
        if random.random() < 0.25:  # INTERSECT binds more tightly than the others, parentheses still more
            third = self.query(depth - 1, outer, wanted=families)[0]
            other = random.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
            sql = random.choice((f"({sql}) {other} {third}", f"{third} {other} ({sql})", f"{sql} {other} {third}", f"{third} {other} {sql}"))
        ordered = False
        if top and "double" not in families and random.random() < 0.4:
            sql += " ORDER BY " + ", ".join(str(number) for number in range(1, len(families) + 1))
            ordered = True
            if random.random() < 0.5:
                sql += f" LIMIT {random.randint(1, 6)}"
        return sql, [Item(f"o{number}", each) for number, each in enumerate(families)], ordered

    def _first_rows(self, branch: str, families: list[str]) -> str:
        """A branch in parentheses, with a LIMIT of its own where its order decides."""
        if "double" in families or self._random.random() < 0.5:
            return f"({branch})"
        order = ", ".join(f"{number}{self._random.choice(('', ' DESC'))}" for number in range(1, len(families) + 1))
        return f"({branch} ORDER BY {order} LIMIT {self._random.randint(1, 5)})"

    # -- FROM

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _source(self, depth: int) -> tuple[str, list[Item]]:
        alias = self._alias()
        if depth > 0 and self._random.random() < 0.25:
            sql, columns, _ = self.query(depth - 1, [])
            return f"({sql}) AS {alias}", [item for each in columns for item in each.under(alias)]
        if self._common and self._random.random() < 0.5:
            table, found = self._random.choice(self._common)
        else:
            table = self._random.choice(TABLES)
            found = self._tables[table]
        return f"{table} AS {alias}", [item for each in found for item in each.under(alias)]

    def _from(self, depth: int, outer: list[Item]) -> tuple[str, list[Item]]:
        random = self._random
        sql, columns = self._source(depth)
        before: list[Item] = []  # what is left of a comma, which no ON sees
        for _ in range(random.choice((0, 0, 1, 1, 1, 2, 2, 3))):
            if random.random() < 0.1:
                inner, right = self._source(depth)
                more, others = self._source(depth)
                inner = f"({inner} {random.choice(('JOIN', 'LEFT JOIN'))} {more} ON {self._on(right, others)})"
                right = right + others
            else:
                inner, right = self._source(depth)
            draw = random.random()
            if draw < 0.05:
                sql = f"{sql} CROSS JOIN {inner}"
            elif draw < 0.12 and not before:
                sql, before, columns = f"{sql}, {inner}", columns, []
            elif draw < 0.2 and not before and _shared(columns, right):
                names = random.choice(("id", "c0", "id, c0"))
                sql = f"{sql} {random.choice(('JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {inner} USING ({names})"
            else:
                kind = "JOIN" if draw < 0.5 else "LEFT JOIN" if draw < 0.88 else "RIGHT JOIN"
                on = self._on(columns, right)
                if random.random() < 0.25:
                    on += " AND " + self._simple(columns + right, outer if random.random() < 0.3 else [])
                sql = f"{sql} {kind} {inner} ON {on}"
            columns = columns + right
        return sql, before + columns + quotients(random, before + columns)

    def _on(self, left: list[Item], right: list[Item]) -> str:
        for _ in range(20):
            one, other = self._random.choice(left), self._random.choice(right)
            if other.family in COMPARABLE[one.family]:
                operator = self._random.choice(("=", "=", "=", "=", "=", "<=>", "<", ">="))
                if one.family == "year":  # MariaDB does not find 2000 by <=> and an index
                    operator = operator.replace("<=>", "=")
                return f"{one.sql} {operator} {other.sql}"
        return "1 = 1"

    # -- outputs

    def _plain_outputs(
        self, depth: int, columns: list[Item], outer: list[Item], wanted: list[str] | None
    ) -> list[Item]:
        random = self._random
        if wanted is not None:
            return [self._of_family(columns, family) for family in wanted]
        found = []
        for _ in range(random.randint(1, 4)):
            draw = random.random()
            column = random.choice(columns)
            if draw < 0.7 or (draw >= 0.8 and depth == 0):
                found.append(column)
            elif draw < 0.75:
                number = self._of_family(columns, "int")
                found.append(Item(f"COALESCE({number.sql}, 0) + {random.randint(1, 3)}", "int"))
            elif draw < 0.8:
                found.append(self._computed(columns))
            elif draw < 0.9:
                found.append(Item(f"({self._predicate(depth, columns, outer)})", "int"))
            else:
                found.append(self._scalar(depth, columns + outer))
        return found

    def _computed(self, columns: list[Item]) -> Item:
        random = self._random
        number, text, day = (self._of_family(columns, family) for family in ("int", "bin", "date"))
        return random.choice((
            Item(f"IF({self._simple(columns, [])}, {number.sql}, {self._of_family(columns, 'int').sql})", "int"),
            Item(f"CASE WHEN {self._simple(columns, [])} THEN {number.sql} WHEN {self._simple(columns, [])} THEN -1 END", "int"),
            Item(f"CONCAT({text.sql}, '-')", "bin"), Item(f"({day.sql} + INTERVAL 1 DAY)", "date"), Item(f"YEAR({day.sql})", "int"),
            Item(f"CHAR_LENGTH({text.sql})", "int"), Item(f"({number.sql} DIV 2)", "int"),
        ))  # fmt: skip

    def _of_family(self, columns: list[Item], family: str) -> Item:
        """A column of the family, or a constant."""
        known = [each for each in columns if each.family == family]
        if known and self._random.random() < 0.9:
            return self._random.choice(known)
        value = self._random.choice(VALUES[family])
        casts = {"date": f"DATE({value})", "time": f"TIME({value})", "datetime": f"CAST({value} AS DATETIME)", "double": f"({value} + 0e0)"}
        if family in ("bin", "ci", "enum", "set", "decimal", "year", "bit"):
            kept = [each for each in columns if each.family == family]
            if kept:
                return self._random.choice(kept)
            target = {"bin": "NULLIF('x', 'x') COLLATE utf8mb4_bin", "ci": "NULL", "decimal": "1.50"}
            return Item(target.get(family, "NULL"), family)
        return Item(casts.get(family, value), family)

    def _aggregate(self, columns: list[Item]) -> Item:
        random = self._random
        draw = random.random()
        if draw < 0.25:
            return Item("COUNT(*)", "int")
        column = random.choice(columns)
        if draw < 0.37:
            return Item(f"COUNT({random.choice(('', 'DISTINCT '))}{column.sql})", "int")
        if draw < 0.4:
            return Item(f"COUNT(DISTINCT {column.sql}, {random.choice(columns).sql})", "int")
        # Quotients MariaDB rounds before it adds them up in groups; others are in `mixed_values`.
        numbers = [each for each in columns if each.family in NUMBERS and " / " not in each.sql]
        number = random.choice(numbers) if numbers else None
        if draw < 0.65 and number is not None:
            function = random.choice(("SUM", "AVG", "SUM"))
            distinct = "DISTINCT " if number.family == "int" and random.random() < 0.2 else ""
            family = "double" if number.family == "double" else "decimal"
            return Item(f"{function}({distinct}{number.sql})", family)
        if draw < 0.75:
            return Item(f"COUNT(CASE WHEN {self._simple(columns, [])} THEN 1 END)", "int")
        if draw < 0.79:
            number = random.choice([each for each in columns if each.family == "int"] or [Item("NULL", "int")])
            return random.choice((
                Item(f"BIT_OR({number.sql})", "int"), Item(f"BIT_XOR({number.sql})", "int"), Item(f"SUM({self._simple(columns, [])})", "decimal"),
                Item(f"VAR_POP({number.sql} + 0e0)", "double"), Item(f"GROUP_CONCAT(DISTINCT {number.sql} ORDER BY {number.sql} DESC)", "bin"),
            ))  # fmt: skip
        if draw < 0.84 and column.family in ("bin", "int"):
            return Item(f"GROUP_CONCAT({column.sql} ORDER BY {column.sql} SEPARATOR '|')", "bin")
        if column.is_shown and column.family not in ("enum", "set", "bit"):
            return Item(f"{random.choice(('MIN', 'MAX'))}({column.sql})", column.family)
        return Item("COUNT(*)", "int")

    def _grouped(
        self, depth: int, columns: list[Item], outer: list[Item], wanted: list[str] | None
    ) -> tuple[list[Item], str]:
        random = self._random
        shown = [each for each in columns if each.is_shown]
        if wanted is not None:
            keys = [self._of_family(columns, family) for family in wanted]
            grouped = [each.sql for each in keys if "." in each.sql]
            if not grouped:
                return keys, ""
            return keys, f" GROUP BY {', '.join(grouped)}"
        keys = random.sample(shown, min(len(shown), random.choice((0, 1, 1, 1, 2))))
        functions = [self._aggregate(columns) for _ in range(random.randint(1, 2))]
        if any(" / " in each.sql for each in keys):  # beside DISTINCT MariaDB puts those that are NULL into another group
            functions = [Item("COUNT(*)", "int") if "(DISTINCT" in each.sql else each for each in functions]
        outputs = [*keys, *functions]
        tail = f" GROUP BY {', '.join(each.sql for each in keys)}" if keys else ""
        plain = [each for each in keys if "(" not in each.sql]  # MariaDB does not know others there
        if random.random() < 0.35:
            having = f"{self._aggregate(columns).sql} IS NOT NULL"
            draw = random.random()
            if draw < 0.6:
                having = f"COUNT(*) {random.choice(('>', '<=', '='))} {random.randint(0, 3)}"
            elif draw < 0.8 and depth > 0 and plain:
                having = self._subquery_predicate(depth, plain, [])
            tail += f" HAVING {having}"
        elif keys and random.random() < 0.08 and not any("(DISTINCT" in each.sql or each.family == "bit" for each in outputs):
            tail += " WITH ROLLUP"  # with which MariaDB counts some equal values twice, and shows a BIT in the line of all
        return outputs, tail

    # -- conditions

    def _condition(self, depth: int, columns: list[Item], outer: list[Item], level: int = 0) -> str:
        random = self._random
        draw = random.random()
        if level < 2 and draw < 0.35:
            joint = random.choice(("AND", "AND", "AND", "OR", "OR", "XOR"))
            left = self._condition(depth, columns, outer, level + 1)
            return f"({left} {joint} {self._condition(depth, columns, outer, level + 1)})"
        if level < 2 and draw < 0.4:
            inner = self._condition(depth, columns, outer, level + 1)
            # MariaDB takes NOT (NOT (x > ANY (…))) for true where x > ANY (…) is false.
            is_twice = inner.startswith("NOT (") and any(word in inner for word in ("ANY (", "SOME (", "ALL ("))
            return inner if is_twice else f"NOT ({inner})"
        return self._predicate(depth, columns, outer)

    def _predicate(self, depth: int, columns: list[Item], outer: list[Item]) -> str:
        if depth > 0 and self._random.random() < 0.4:
            return self._subquery_predicate(depth, columns, outer)
        return self._simple(columns, outer)

    def _simple(self, columns: list[Item], outer: list[Item]) -> str:
        random = self._random
        column = random.choice(columns)
        draw = random.random()
        if outer and draw < 0.5:
            fitting = [each for each in outer if each.family in COMPARABLE[column.family]]
            if fitting:
                operator = random.choice(("=", "=", "=", "<", ">=", "<>", "<=>"))
                return f"{column.sql} {operator} {random.choice(fitting).sql}"
        if draw < 0.6:
            operator = random.choice(("=", "=", "=", "<", ">", "<=", ">=", "<>"))
            if column.family in ("enum", "set"):
                operator = random.choice(("=", "<>"))
            return f"{column.sql} {operator} {random.choice(self._constants(column.family) if operator == '=' else VALUES[column.family])}"
        if draw < 0.7:
            return f"{column.sql} IS {random.choice(('', 'NOT '))}NULL"
        if draw < 0.85:
            values = random.sample(self._constants(column.family), random.randint(1, 3))
            if random.random() < 0.2:
                other = random.choice(columns)
                drawn = [(value, random.choice(self._constants(other.family))) for value in values]
                # Bytes in a row constant MariaDB compares in one way in WHERE and in another in the SELECT list.
                pairs = [f"({_plain(one, column.family)}, {_plain(two, other.family)})" for one, two in drawn]
                # Not by NOT IN: MariaDB takes an outer join for an inner one, where the condition may be true for its NULLs.
                return f"(({column.sql}, {other.sql}) IN ({', '.join(pairs)})) IS TRUE"
            if random.random() < 0.2 and column.family in ("int", "date", "datetime", "bin", "ci", "time"):
                low, high = random.choices(VALUES[column.family], k=2)
                return f"{column.sql} {random.choice(('', '', 'NOT '))}BETWEEN {low} AND {high}"
            return f"{column.sql} {random.choice(('', '', 'NOT '))}IN ({', '.join(values)})"
        if draw < 0.9 and column.family in ("ci", "bin"):
            patterns = ("%", "%B%", "_", "a%")[: 3 if column.family == "bin" else 4]  # MariaDB does not find a\t in an index by the last
            return f"{column.sql} LIKE {random.choice(patterns).join(chr(39) * 2)}"
        others = [each for each in columns if each.family in COMPARABLE[column.family]]
        return f"{column.sql} {random.choice(('=', '<', '>='))} {random.choice(others).sql}"

    def _constants(self, family: str) -> list[str]:
        """Looked up in an index of integers that equal the column, MariaDB takes 2.25 for 2: so no fractions."""
        plain = [each for each in VALUES[family] if family not in ("decimal", "double") or "." not in each]
        return [*plain, *WRITTEN_OTHERWISE.get(family, ())]

    def _subquery_predicate(self, depth: int, columns: list[Item], outer: list[Item]) -> str:
        random = self._random
        around = [*columns, *outer] if random.random() < 0.7 else []
        column = random.choice(columns)
        draw = random.random()
        if draw < 0.3:
            sql, _, _ = self.query(depth - 1, around, wanted=[random.choice(("int", "bin"))])
            if random.random() < 0.2:
                source, found = self._from(depth - 1, around)
                where = f" WHERE {self._condition(depth - 1, found, around)}"
                sql = f"SELECT {self._aggregate(found).sql} FROM {source}{where} HAVING COUNT(*) > {random.randint(0, 2)}"
            elif random.random() < 0.25:
                other, _, _ = self.query(depth - 1, around, wanted=["int"])
                first, _, _ = self.query(depth - 1, around, wanted=["int"])
                # MariaDB takes EXCEPT ALL for EXCEPT inside of EXISTS, where it makes a difference.
                operator = random.choice(("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT", "UNION"))
                sql = f"({first}) {operator} ({other})"
            return f"{random.choice(('', 'NOT '))}EXISTS ({sql})"
        if draw < 0.6:
            sql = self._one_column(depth, around, column.family)
            return f"{column.sql} {random.choice(('', 'NOT '))}IN ({sql})"
        if draw < 0.72:
            operator = random.choice(("=", "<", ">", "<=", ">=", "<>"))
            if column.family in ("enum", "set"):
                operator = "="
            sql = self._one_column(depth, around, column.family)
            if sql.startswith("SELECT NULL "):  # beside which MariaDB takes <> ANY for false
                operator = "="
            return f"{column.sql} {operator} {random.choice(('ANY', 'ALL', 'SOME'))} ({sql})"
        if draw < 0.75:
            source, found = self._from(depth - 1, around)
            where = f" WHERE {self._condition(depth - 1, found, around)}"
            one = self._of_family(found, "int").sql
            left = f"({self._of_family(columns, 'int').sql}, {self._of_family(columns, 'int').sql})"
            # Not by < or <>: MariaDB takes those for false, whatever comes first, if an outer join made one of the columns NULL;
            # and = for NULL, where it is false.
            return f"({left} = (SELECT COUNT({one}), MAX({one}) FROM {source}{where})) IS TRUE"
        if draw < 0.8:
            pair = random.sample(columns, min(2, len(columns)))
            sql, _, _ = self.query(depth - 1, around, wanted=[each.family for each in pair])
            left = ", ".join(each.sql for each in pair)
            return f"({left}) {random.choice(('', 'NOT '))}IN ({sql})" if len(pair) > 1 else f"{left} IN ({sql})"
        value = self._scalar(depth, around)
        if value.family == "int":
            return f"{self._of_family(columns, 'int').sql} {random.choice(('=', '<', '>'))} {value.sql}"
        return f"{value.sql} IS {random.choice(('', 'NOT '))}NULL"

    def _one_column(self, depth: int, outer: list[Item], family: str) -> str:
        return self.query(depth - 1, outer, wanted=[family])[0]

    def _scalar(self, depth: int, outer: list[Item]) -> Item:
        """A scalar subquery: an aggregate, or the first of some values."""
        random = self._random
        source, columns = self._from(depth - 1, outer)
        where = f" WHERE {self._condition(depth - 1, columns, outer)}" if random.random() < 0.85 else ""
        if random.random() < 0.7:
            value = self._aggregate(columns)
            # Beside the aggregate, MariaDB takes a subquery for NULL if there are no rows.
            other = self._scalar(depth - 1, outer) if depth > 1 and random.random() < 0.2 else value
            if other is not value and other.family == "int":
                where += f" HAVING COUNT(*) > {other.sql}"
            return Item(f"(SELECT {value.sql} FROM {source}{where})", value.family)
        shown = [each for each in columns if each.is_shown and each.family not in ("enum", "set", "bit", "double")] or [Item("1", "int")]
        column = random.choice(shown)
        return Item(f"(SELECT {column.sql} FROM {source}{where} ORDER BY {column.sql} LIMIT 1)", column.family)
