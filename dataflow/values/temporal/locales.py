"""The names of months and days in other languages (lc_time_names), derived from MariaDB's (tests/unit/dataflow/locale_names.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ENGLISH = "en_US"


@dataclass(frozen=True, slots=True)
class LocaleNames:
    """Months from January on, days from Monday on."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    days: tuple[str, ...]
    short_days: tuple[str, ...]


@cache
def locales() -> dict[str, LocaleNames]:
    """In the order of their numbers."""
    found = json.loads(files(__package__).joinpath("locales.json").read_text("utf-8"))
    return {name: LocaleNames(*map(tuple, names)) for name, names in found.items()}


def locale_name(wanted: object) -> str | None:
    """The locale of a name in any case, or of a number."""
    if isinstance(wanted, int):
        return list(locales())[wanted] if 0 <= wanted < len(locales()) else None
    return next((name for name in locales() if name.lower() == str(wanted).lower()), None)
