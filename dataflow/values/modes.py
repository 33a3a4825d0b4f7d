"""The part of `sql_mode` and the session that decides how values are converted and stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

DEFAULT_SQL_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)


@dataclass(frozen=True, slots=True)
class Modes:
    """`strict` makes a value that does not fit an error instead of a warning.

    `time_zone` is the zone of the session: TIMESTAMP columns hold UTC. `now` is the moment in UTC that
    the session has set to be now, if it has. AUTO_INCREMENT values are `number_offset` and whole steps from there.
    """

    strict: bool = True
    no_zero_date: bool = True
    no_zero_in_date: bool = True
    allow_invalid_dates: bool = False
    error_for_division_by_zero: bool = True
    no_auto_value_on_zero: bool = False
    time_zone: str = "UTC"
    now: int | None = None
    number_step: int = 1
    number_offset: int = 1

    @classmethod
    def parse(cls, sql_mode: str, time_zone: str = "UTC") -> Modes:
        names = {name.strip().upper() for name in sql_mode.split(",")}
        traditional = "TRADITIONAL" in names
        return cls(
            strict=traditional or not names.isdisjoint(("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES")),
            no_zero_date=traditional or "NO_ZERO_DATE" in names,
            no_zero_in_date=traditional or "NO_ZERO_IN_DATE" in names,
            allow_invalid_dates="ALLOW_INVALID_DATES" in names,
            error_for_division_by_zero=traditional or "ERROR_FOR_DIVISION_BY_ZERO" in names,
            no_auto_value_on_zero="NO_AUTO_VALUE_ON_ZERO" in names,
            time_zone=time_zone,
        )

    @property
    def refuses_division_by_zero(self) -> bool:
        """Whether a value that is to be stored may not come from a division by zero."""
        return self.strict and self.error_for_division_by_zero

    def ignoring(self) -> Modes:
        """As under INSERT IGNORE: what does not fit is made to fit, with a warning."""
        return replace(self, strict=False)


DEFAULT_MODES = Modes()
LENIENT_MODES = Modes(strict=False, no_zero_date=False, no_zero_in_date=False)
"""How expressions read dates: zero dates and zero parts are ordinary values."""
