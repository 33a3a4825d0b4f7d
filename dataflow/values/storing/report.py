"""Where storing says what it had to change, and where strictness is decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dataflow.errors import Condition, InvalidStatement

NOTE, WARNING = "Note", "Warning"


@dataclass(frozen=True, slots=True)
class Notice:
    """One line of SHOW WARNINGS."""

    level: str
    condition: Condition
    arguments: tuple[Any, ...] = ()

    @property
    def message(self) -> str:
        return self.condition.template.format(*self.arguments)


@dataclass(slots=True)
class Report:
    """Of one statement. `row_number` is the row being stored, from 1; the executor keeps it."""

    row_number: int = 1
    notices: list[Notice] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Target:
    """The column a value goes into, for messages, and whether to be strict."""

    name: str
    strict: bool

    def object(self, report: Report, condition: Condition, *arguments: object, relaxed: Condition | None = None) -> None:
        """Refuse the value, or note it where the mode is not strict (with another condition, perhaps)."""
        full = (*arguments, self.name, report.row_number)
        if self.strict:
            raise InvalidStatement(condition, *full)
        if relaxed is not None:
            condition, full = relaxed, (self.name, report.row_number)
        report.notices.append(Notice(WARNING, condition, full))

    def note(self, report: Report) -> None:
        report.notices.append(Notice(NOTE, Condition.DATA_TRUNCATED, (self.name, report.row_number)))


def shown(value: object) -> str:
    """A value as error messages quote it."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = str(value)
    return text if len(text) <= 64 else text[:64]
