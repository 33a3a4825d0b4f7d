"""The limits of a statement's time and memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backend.execution.memory_account import LIMIT_BYTES, VARIABLE

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_HINT = re.compile(
    r"[\s(]*SELECT\s*/\*\+(?:(?!\*/).)*?\bMAX_EXECUTION_TIME\s*\(\s*(\d+)\s*\)(?:(?!\*/).)*\*/", re.IGNORECASE | re.DOTALL
)


def time_limit_s(session: Session, sql: str) -> float:
    """What max_execution_time, or the hint in its place, allows a SELECT; 0 for as long as it likes."""
    hint = _HINT.match(sql) if "/*+" in sql else None
    limit = hint[1] if hint is not None else session.variables.get("max_execution_time")
    return int(str(limit)) / 1000


def memory_limit_bytes(session: Session) -> int:
    """A session may ask for less than everybody has, but not for more."""
    limits = (session.variables.get(VARIABLE), session.environment.globals.get(VARIABLE))
    return min([each for each in limits if isinstance(each, int) and each > 0], default=LIMIT_BYTES)
