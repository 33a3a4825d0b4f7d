"""Differences that are not millrace's to mend: rules, each with its reason, in `apart.toml`.

A rule holds when all that it says does: `statement`, `message` (millrace's, or MariaDB's), `mariadb` and `millrace` (their answers, or
rows of a table, as they are shown) are regular expressions that are searched for, `kinds` are names of `Kind`, `codes` are MariaDB's and millrace's error
(0 is none), `places` are lines of files (`file:line`) for what is about a single statement. With
`both_warn`, both servers have warnings.

`class` says what becomes of the statement: "apart" (the default) is one product's own way; "limit" is a limit of millrace's, and counts as
a difference; "absent" is about something that millrace does not have at all.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.compatibility.mariadb_test.comparison import Kind
from tests.compatibility.mariadb_test.lines import Answer

PATH = Path(__file__).with_name("apart.toml")


@dataclass(frozen=True, slots=True)
class Rule:
    reason: str
    statement: re.Pattern[str] | None
    message: re.Pattern[str] | None
    mariadb: re.Pattern[str] | None
    millrace: re.Pattern[str] | None
    kinds: frozenset[str]
    codes: frozenset[tuple[int, int]]
    places: frozenset[str]
    both_warn: bool
    kind: Kind

    def holds(self, place: str, statement: str, kind: Kind, expected: Answer, found: Answer, shown: tuple[str, str]) -> bool:
        return (
            (not self.places or place in self.places)
            and (not self.both_warn or (expected.warnings > 0 and found.warnings > 0))
            and (self.statement is None or self.statement.search(statement) is not None)
            and (self.message is None or self.message.search(f"{expected.message}\n{found.message}") is not None)
            and (not self.kinds or kind.value in self.kinds)
            and (not self.codes or (expected.code, found.code) in self.codes)
            and (self.mariadb is None or self.mariadb.search(shown[0]) is not None)
            and (self.millrace is None or self.millrace.search(shown[1]) is not None)
        )


def _pattern(rule: dict[str, str], name: str) -> re.Pattern[str] | None:
    return re.compile(rule[name], re.IGNORECASE) if name in rule else None


class Rules:
    def __init__(self, path: Path = PATH) -> None:
        content = tomllib.loads(path.read_text())
        self.files: dict[str, str] = {
            pattern: each["reason"] for each in content["files"] for pattern in each["patterns"].split()
        }
        self._rules = [
            Rule(
                each["reason"],
                re.compile(each["statement"], re.IGNORECASE | re.VERBOSE) if "statement" in each else None,
                _pattern(each, "message"),
                _pattern(each, "mariadb"),
                _pattern(each, "millrace"),
                frozenset(each.get("kinds", ())),
                frozenset((first, second) for first, second in each.get("codes", ())),
                frozenset(each.get("places", "").split()),
                each.get("both_warn", False),
                Kind(each.get("class", Kind.APART)),
            )
            for each in content["rules"]
        ]

    def rule(
        self, place: str, statement: str, kind: Kind, expected: Answer, found: Answer, shown: tuple[str, str] | None = None
    ) -> Rule | None:
        """The first that holds. `shown`: what differs, if it is not the answers: the rows of a table."""
        texts = shown or (str(expected), str(found))
        return next((rule for rule in self._rules if rule.holds(place, statement, kind, expected, found, texts)), None)
