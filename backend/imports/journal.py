"""The journal of an import: tables of the target, written in the same transactions as the rows.

A step's line has the unit, the step's number, where the unit goes on after it, and how many of its rows are stored by then. Two
importers that want the same step collide in its primary key, so one that was thought dead cannot store rows a second time. What
was refused is there with its key and error. When the import is done, its lines go.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pymysql.converters import escape_string

from backend.imports.server import rows_of

DATABASE = "millrace_imports"
BINLOG_UNIT = "binlog"
"""The unit of the changes that follow the snapshot."""
_TABLES = (
    f"CREATE TABLE IF NOT EXISTS {DATABASE}.jobs (job VARCHAR(64) PRIMARY KEY, source LONGTEXT NOT NULL, facts LONGTEXT NOT NULL)",
    f"""CREATE TABLE IF NOT EXISTS {DATABASE}.steps (job VARCHAR(64), unit VARCHAR(190), step BIGINT, place LONGTEXT NOT NULL,
    row_count BIGINT NOT NULL, is_last TINYINT NOT NULL, PRIMARY KEY (job, unit, step))""",
    f"""CREATE TABLE IF NOT EXISTS {DATABASE}.rejected (job VARCHAR(64), unit VARCHAR(190), number BIGINT, table_name VARCHAR(190) NOT NULL,
    row_key LONGTEXT NOT NULL, code INT NOT NULL, message LONGTEXT NOT NULL, PRIMARY KEY (job, unit, number))""",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a unit is. `place` is where it goes on, in words of its source."""

    step: int = 0
    place: str = ""
    stored: int = 0
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    table: str
    key: str
    code: int
    message: str


class Journal:
    def __init__(self, job: str) -> None:
        self.job = job

    def open(self, connection: Any) -> dict[str, Any] | None:
        """What was planned for this job, if it was begun before."""
        rows_of(connection, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        for table in _TABLES:
            rows_of(connection, table)
        found = rows_of(connection, f"SELECT facts FROM {DATABASE}.jobs WHERE job = %s", (self.job,))
        return json.loads(found[0][0]) if found else None

    def begin(self, connection: Any, source: str, facts: dict[str, Any]) -> None:
        rows_of(connection, f"INSERT INTO {DATABASE}.jobs VALUES (%s, %s, %s)", (self.job, source, json.dumps(facts)))

    def amend(self, connection: Any, facts: dict[str, Any]) -> None:
        rows_of(connection, f"UPDATE {DATABASE}.jobs SET facts = %s WHERE job = %s", (json.dumps(facts), self.job))

    def marks(self, connection: Any) -> dict[str, Mark]:
        """The last step of each unit."""
        sql = f"SELECT unit, step, place, row_count, is_last FROM {DATABASE}.steps WHERE job = %s ORDER BY step"
        return {unit: Mark(step, place, stored, bool(is_last)) for unit, step, place, stored, is_last in rows_of(connection, sql, (self.job,))}

    def has(self, connection: Any, unit: str, step: int) -> bool:
        sql = f"SELECT 1 FROM {DATABASE}.steps WHERE job = %s AND unit = %s AND step = %s"
        return bool(rows_of(connection, sql, (self.job, unit, step)))

    def rejected(self, connection: Any) -> list[Rejected]:
        sql = f"SELECT table_name, row_key, code, message FROM {DATABASE}.rejected WHERE job = %s ORDER BY table_name, unit, number"
        return [Rejected(*row) for row in rows_of(connection, sql, (self.job,))]

    def end(self, connection: Any) -> None:
        """Nothing is left of it; so it is forgotten, or may be begun again."""
        for table in ("rejected", "steps", "jobs"):
            rows_of(connection, f"DELETE FROM {DATABASE}.{table} WHERE job = %s", (self.job,))

    def begin_again(self, connection: Any, unit: str) -> None:
        for table in ("rejected", "steps"):
            rows_of(connection, f"DELETE FROM {DATABASE}.{table} WHERE job = %s AND unit = %s", (self.job, unit))

    def step_sql(self, unit: str, mark: Mark) -> str:
        """The statement that is to be one transaction with the step's rows."""
        values = _texts(self.job, unit), str(mark.step), _texts(mark.place), str(mark.stored), str(int(mark.is_last))
        return f"INSERT INTO {DATABASE}.steps VALUES ({', '.join(values)})"

    def rejected_sql(self, unit: str, number: int, rejected: Rejected) -> str:
        values = _texts(self.job, unit), str(number), _texts(rejected.table, rejected.key), str(rejected.code), _texts(rejected.message)
        return f"INSERT INTO {DATABASE}.rejected VALUES ({', '.join(values)})"


def _texts(*values: str) -> str:
    return ", ".join(f"'{escape_string(value)}'" for value in values)
