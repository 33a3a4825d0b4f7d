"""The session settings that decide what a statement means before any row is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.values.result_limits import DEFAULT_RESULTS, ResultSettings
from dataflow.values.types import DEFAULT_COLLATION

DEFAULT_SQL_MODE = frozenset(
    {
        "ONLY_FULL_GROUP_BY",
        "STRICT_TRANS_TABLES",
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_ENGINE_SUBSTITUTION",
    }
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`collation` is collation_connection: what string literals have.

    `owner` names the session if it has temporary tables, `unborn` the one that is being made (see
    `controller.sql.definitions.temporary`).
    `variables` are the user variables that the statement may read, with the codes of their types (see
    `controller.sql.text.parameter_types`).
    """

    sql_mode: frozenset[str] = DEFAULT_SQL_MODE
    collation: str = DEFAULT_COLLATION
    foreign_key_checks: bool = True
    time_zone: str = "UTC"
    owner: str = ""
    recursion_depth_max: int = 1000
    variables: tuple[tuple[str, str], ...] = ()
    unborn: str = ""
    results: ResultSettings = DEFAULT_RESULTS
    client_codec: str = "utf-8"
    """Of the bytes that were sent; an introducer reads them as another one's."""
    server_collation: str = DEFAULT_COLLATION
    """What a new database has that names none."""

    @property
    def ansi_quotes(self) -> bool:
        return "ANSI_QUOTES" in self.sql_mode

    @property
    def backslash_escapes(self) -> bool:
        return "NO_BACKSLASH_ESCAPES" not in self.sql_mode


DEFAULT_SETTINGS = Settings()
