"""A table made the same on both servers again, so that what follows a difference can be compared.

millrace's gets the definition and the rows of MariaDB's. What cannot be brought over that way stays different.
"""

from __future__ import annotations

import re

from tests.compatibility.mariadb_test.lines import Answer, Line

ROWS_PER_INSERT = 200
_ESCAPED = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}
_OPTION_OF_MARIADB = re.compile(r"\s+(PAGE_CHECKSUM|TRANSACTIONAL)=\d")


def copy_table(oracle: Line, millrace: Line, name: str, content: Answer) -> None:
    """Fill millrace's `name` with `content`, and make it before if it is not there."""
    millrace.ask("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0")
    if millrace.ask(f"DELETE FROM {name}").code == 1146:
        definition = oracle.ask(f"SHOW CREATE TABLE {name}").rows
        if not definition or not definition[0][1]:
            return
        text = definition[0][1].decode("utf-8", "surrogateescape")
        qualified = re.sub(r"^(CREATE TABLE) `[^`]+`", lambda found: f"{found[1]} {name}", text)
        if millrace.ask(_OPTION_OF_MARIADB.sub("", qualified)).code:
            return
    rows = content.rows or []
    for start in range(0, len(rows), ROWS_PER_INSERT):
        values = ",".join(f"({','.join(map(_literal, row))})" for row in rows[start : start + ROWS_PER_INSERT])
        millrace.ask(f"INSERT INTO {name} VALUES {values}")


def _literal(cell: bytes | None) -> str:
    if cell is None:
        return "NULL"
    escaped = b"".join(_ESCAPED.get(byte, bytes((byte,))) for byte in cell)
    return f"'{escaped.decode('utf-8', 'surrogateescape')}'"
