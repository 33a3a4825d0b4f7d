"""A table or view made the same on both servers again, so that what follows a difference can be compared.

millrace's gets the definition and the rows of MariaDB's. What cannot be brought over that way stays different.
"""

from __future__ import annotations

import re
from enum import StrEnum

from tests.compatibility.mariadb_test.comparison import same_rows
from tests.compatibility.mariadb_test.lines import Answer, Line

COPIED_ROWS_MAX = 1_000
ROWS_PER_INSERT = 200
_ESCAPED = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}
_OPTION_OF_MARIADB = re.compile(r"\s+(PAGE_CHECKSUM|TRANSACTIONAL)=\d")
_NEXT_NUMBER = re.compile(r"\bAUTO_INCREMENT=(\d+)")


class Relation(StrEnum):
    TABLE = "BASE TABLE"
    VIEW = "VIEW"


def relations(line: Line, database: str) -> dict[str, Relation]:
    """The tables and views of a database by name; temporary tables are not among them."""
    rows = line.ask(f"SHOW FULL TABLES FROM `{database}`").rows or []
    found = [((name or b"").decode("utf-8", "surrogateescape"), kind) for name, kind, *_ in rows]
    return {name: Relation.VIEW if kind == b"VIEW" else Relation.TABLE for name, kind in found}


def reconcile(oracle: Line, millrace: Line, database: str, names: set[str]) -> set[str]:
    """Give millrace all of `names` (in small letters) as MariaDB has them, and all else that only one of them has.

    The names, in small letters, that are still different."""
    wanted, had = (relations(line, database) for line in (oracle, millrace))
    millrace.ask("SET foreign_key_checks = 0")
    for name in had.keys() - wanted.keys():
        drop(millrace, f"`{database}`.`{name}`")
    touched = {name for name in wanted if name not in had or name.lower() in names}
    ordered = sorted(touched, key=lambda name: (wanted[name] is Relation.VIEW, name))
    return {name.lower() for name in ordered if not _remake(oracle, millrace, database, name, wanted[name])}


def drop(line: Line, name: str) -> None:
    line.ask(f"DROP VIEW IF EXISTS {name}")
    line.ask(f"DROP TABLE IF EXISTS {name}")


def _remake(oracle: Line, millrace: Line, database: str, name: str, relation: Relation) -> bool:
    qualified = f"`{database}`.`{name}`"
    if relation is Relation.TABLE:
        return remake_table(oracle, millrace, qualified)
    definition = oracle.ask(f"SHOW CREATE VIEW {qualified}").rows or [(b"", None)]
    drop(millrace, qualified)
    return millrace.ask((definition[0][1] or b"SIGNAL").decode("utf-8", "surrogateescape")).code == 0


def remake_table(oracle: Line, millrace: Line, name: str) -> bool:
    """Drop millrace's `name` and make it as MariaDB's is; whether that went well."""
    definition = oracle.ask(f"SHOW CREATE TABLE {name}").rows
    content = oracle.ask(f"SELECT * FROM {name} LIMIT {COPIED_ROWS_MAX + 1}")
    if not definition or not definition[0][1] or content.rows is None or len(content.rows) > COPIED_ROWS_MAX:
        return False
    drop(millrace, name)
    text = definition[0][1].decode("utf-8", "surrogateescape")
    qualified = re.sub(r"^(CREATE (?:TEMPORARY )?TABLE) `[^`]+`", lambda found: f"{found[1]} {name}", text)
    return millrace.ask(_OPTION_OF_MARIADB.sub("", qualified)).code == 0 and _fill(millrace, name, content)


def copy_rows(oracle: Line, millrace: Line, name: str, content: Answer) -> bool:
    """Fill millrace's `name` with `content`, and make it before if it is not there; whether that went well."""
    millrace.ask("SET foreign_key_checks = 0")
    if millrace.ask(f"DELETE FROM {name}").code:
        return remake_table(oracle, millrace, name)
    definition = oracle.ask(f"SHOW CREATE TABLE {name}").rows
    if definition and (found := _NEXT_NUMBER.search((definition[0][1] or b"").decode("utf-8", "surrogateescape"))):
        millrace.ask(f"ALTER TABLE {name} AUTO_INCREMENT = {found[1]}")
    return _fill(millrace, name, content)


def _fill(millrace: Line, name: str, content: Answer) -> bool:
    before = (millrace.ask("SELECT @@sql_mode").rows or [(b"",)])[0][0] or b""
    millrace.ask("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
    rows = content.rows or []
    for start in range(0, len(rows), ROWS_PER_INSERT):
        values = ",".join(f"({','.join(map(_literal, row))})" for row in rows[start : start + ROWS_PER_INSERT])
        millrace.ask(f"INSERT INTO {name} VALUES {values}")
    millrace.ask(f"SET sql_mode = '{before.decode()}'")
    sql = f"SELECT * FROM {name}"
    again = millrace.ask(sql)
    return again.rows is not None and same_rows(sql, content, again, ())


def _literal(cell: bytes | None) -> str:
    if cell is None:
        return "NULL"
    escaped = b"".join(_ESCAPED.get(byte, bytes((byte,))) for byte in cell)
    return f"'{escaped.decode('utf-8', 'surrogateescape')}'"
