"""The heavy statements of `millrace bench stalls`, and the rows that they are about."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = (
    "CREATE TABLE {} (id INT NOT NULL PRIMARY KEY, n INT NOT NULL, grp INT NOT NULL, "
    "name VARCHAR(60) NOT NULL, note VARCHAR(200))"
)


@dataclass(frozen=True, slots=True)
class Heavy:
    """`before` and `after` are not measured. `{file}` in `sql` stands for the rows as a file."""

    name: str
    sql: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def load_lines(first: int, count: int) -> list[tuple[int, int, int, str, str]]:
    return [
        (number, number * 7919 % 1_000_003, number % 1_000, f"a name of some length {number}", f"note {number % 5_000}")
        for number in range(first, first + count)
    ]


def heavy_statements(rows: int) -> list[Heavy]:
    """For a table `big` of so many rows."""
    most = rows * 2 // 5
    across = max(1, int((rows * 4) ** 0.5))
    inner = "id"
    for _ in range(60):
        inner = f"({inner} + 1)"
    return [
        Heavy("nothing", "SELECT SLEEP(2)"),
        Heavy("update_all", "UPDATE big SET n = n + 1"),
        Heavy("order_limit", "SELECT id, name FROM big ORDER BY n, name LIMIT 10"),
        Heavy("order_all", "SELECT id, name FROM big ORDER BY n DESC, name"),
        Heavy("group_by", "SELECT grp, COUNT(*), SUM(n), MAX(name) FROM big GROUP BY grp"),
        Heavy("group_many", "SELECT name, COUNT(*) FROM big GROUP BY name HAVING COUNT(*) > 1"),
        Heavy("distinct", "SELECT DISTINCT note, grp FROM big"),
        Heavy("cross_join", f"SELECT COUNT(*) FROM big a JOIN big b ON a.id < {across} AND b.id < {across} AND a.n <> b.n"),
        Heavy("hash_join", "SELECT COUNT(*), SUM(a.n) FROM big a JOIN big b ON a.n = b.n + 1"),
        Heavy("window", "SELECT id, ROW_NUMBER() OVER (PARTITION BY grp ORDER BY n) FROM big"),
        Heavy("union", "SELECT id, note FROM big UNION SELECT n, note FROM big"),
        Heavy("subquery", "SELECT COUNT(*) FROM big WHERE n > (SELECT AVG(n) FROM big)"),
        Heavy("semi_join", "SELECT COUNT(*) FROM big WHERE n IN (SELECT id FROM big WHERE grp < 900)"),
        Heavy("long_strings", "SELECT id, REPEAT(name, 40) s FROM big ORDER BY s LIMIT 1000"),
        Heavy("recursion", "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT COUNT(*) FROM r a JOIN r b ON a.n < b.n"),
        Heavy("plain_scan", "SELECT * FROM big"),
        Heavy("insert_values", _insert("target", rows // 4, 0), after=("TRUNCATE TABLE target",)),
        Heavy("insert_strings", _insert("target", rows // 20, 150), after=("TRUNCATE TABLE target",)),
        Heavy("insert_select", "INSERT INTO target SELECT * FROM big"),
        Heavy("delete_many", f"DELETE FROM target WHERE id < {most}", after=("TRUNCATE TABLE target",)),
        Heavy("create_select", "CREATE TABLE made AS SELECT * FROM big", after=("DROP TABLE made",)),
        Heavy("load_data", "LOAD DATA LOCAL INFILE '{file}' INTO TABLE loaded", after=("TRUNCATE TABLE loaded",)),
        Heavy("in_list", f"SELECT COUNT(*) FROM big WHERE id IN ({', '.join(str(n * 3) for n in range(rows // 4))})"),
        Heavy("in_strings", f"SELECT COUNT(*) FROM big WHERE name IN ({', '.join(repr(f'a name {n}') for n in range(rows // 10))})"),
        Heavy("explain_deep", f"EXPLAIN SELECT {inner} FROM big WHERE {inner} > 3"),
        Heavy("select_deep", f"SELECT {inner} + n FROM big WHERE {inner} > 4 AND id < 1000 ORDER BY {inner} DESC"),
        Heavy("many_terms", f"SELECT COUNT(*) FROM big WHERE id < 10 AND ({' OR '.join(f'n = {n} + grp' for n in range(rows // 250))})"),
    ]  # fmt: skip


def _insert(table: str, rows: int, padding: int) -> str:
    values = ", ".join(
        f"({number}, {n}, {group}, '{name}', '{note}{'x' * padding}')" for number, n, group, name, note in load_lines(0, rows)
    )
    return f"INSERT INTO {table} VALUES {values}"
