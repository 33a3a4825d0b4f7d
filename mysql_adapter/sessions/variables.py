"""System variables: a session's own values, and what may be assigned (`controller.system_variables` has what exists).

Most of them change nothing here; clients read them to decide what to send. Those that do
matter are read by name in `session`. A session starts with the values of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from controller.sql.settings import Settings
from controller.system_variables import VARIABLES, VERSION, Shape, Variable
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.notices import say
from dataflow.functions.ciphers import MODES as ENCRYPTION_MODES
from dataflow.values.collation.names import canonical
from dataflow.values.modes import Modes
from dataflow.values.result_limits import ResultSettings
from dataflow.values.temporal.locales import locale_name
from dataflow.values.types import DEFAULT_COLLATION, Value
from mysql_adapter.wire.charsets import charset_of, collation_of

__all__ = ["VERSION", "Shape", "Variables", "checked", "find", "settings_of", "shown", "sql_mode"]


ISOLATION_LEVELS = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")

SQL_MODES = (
    "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ANSI", "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH", "TIME_TRUNCATE_FRACTIONAL",
)  # fmt: skip
"""In the order in which MySQL lists them."""
IGNORED_SQL_MODES = frozenset(
    {
        "NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "MYSQL323", "MYSQL40",
        "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB",
    }
)  # fmt: skip
"""Of older versions and MariaDB; dumps name them."""
_ANSI = ("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY")
_TRADITIONAL = (
    "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION",
)  # fmt: skip

_SYNONYMS = {"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only",
             "identity": "last_insert_id", "storage_engine": "default_storage_engine"}  # fmt: skip


_SIDES_WITH_COLLATION = frozenset({"connection", "server", "database"})


def find(name: str) -> Variable:
    variable = VARIABLES.get(name.lower())
    if variable is None:
        raise InvalidStatement(Condition.UNKNOWN_SYSTEM_VARIABLE, name)
    return variable


class Variables:
    """The values of one session, or of the process (`parent` None)."""

    def __init__(self, parent: Variables | None = None) -> None:
        self._parent = parent
        self._values: dict[str, Value] = {}
        if parent is not None:
            self._values.update(parent._values)

    def get(self, name: str) -> Value:
        lowered = name.lower()
        lowered = _SYNONYMS.get(lowered, lowered)
        if lowered in self._values:
            return self._values[lowered]
        variable = find(name)
        if variable.scope == "global" and self._parent is not None:
            return self._parent.get(lowered)
        return variable.default

    def put(self, name: str, value: Value) -> None:
        """Set without questions. A character set brings its collation, and the other way round."""
        lowered = name.lower()
        self._values[_SYNONYMS.get(lowered, lowered)] = value
        word, _, side = lowered.rpartition("_")
        if side not in _SIDES_WITH_COLLATION:
            return
        if word == "character_set" and (charset := charset_of(str(value))) is not None:
            self._values[f"collation_{side}"] = charset.default_collation
        elif word == "collation" and (collation := collation_of(str(value))) is not None:
            self._values[f"character_set_{side}"] = collation.charset.name

    def forget(self, name: str) -> None:
        lowered = name.lower()
        self._values.pop(_SYNONYMS.get(lowered, lowered), None)

    def items(self) -> Iterator[tuple[str, str]]:
        """Names and values as SHOW VARIABLES shows them."""
        for name in sorted(VARIABLES):
            yield name, shown(VARIABLES[name], self.get(name))


def shown(variable: Variable, value: Value) -> str:
    if variable.shape is Shape.FLAG:
        return "ON" if value else "OFF"
    if value is None:
        return ""
    if variable.name == "long_query_time":
        return f"{float(str(value)):.6f}"
    return str(value)


def checked(variable: Variable, value: Value) -> Value:
    """`value` as the variable holds it, or error 1231."""
    match variable.shape:
        case Shape.FLAG:
            return _flag(variable, value)
        case Shape.NUMBER:
            return _number(variable, value)
        case Shape.CHARSET:
            return _charset(variable, value)
        case Shape.COLLATION:
            found = collation_of(str(value))
            if found is None:
                raise InvalidStatement(Condition.UNKNOWN_COLLATION, value)
            return found.name
        case Shape.SQL_MODE:
            return sql_mode(value)
        case Shape.ISOLATION:
            level = str(value).upper().replace(" ", "-")
            if isinstance(value, int) and 0 <= value < len(ISOLATION_LEVELS):
                level = ISOLATION_LEVELS[value]
            if level not in ISOLATION_LEVELS:
                raise _wrong(variable, value)
            return level
        case Shape.TIME_ZONE | Shape.TEXT | Shape.CHOICE:
            if value is None:
                raise _wrong(variable, "NULL")
            if variable.name == "lc_time_names":
                locale = locale_name(value)
                if locale is None:
                    raise InvalidStatement(Condition.UNKNOWN_LOCALE, value)
                return locale
            if variable.name == "block_encryption_mode" and str(value).lower() not in ENCRYPTION_MODES:
                raise _wrong(variable, value)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _wrong(variable: Variable, value: object) -> InvalidStatement:
    return InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, variable.name, value)


def _flag(variable: Variable, value: Value) -> int:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered in ("on", "true", "1"):
            return 1
        if lowered in ("off", "false", "0"):
            return 0
    elif value in (0, 1):
        return int(value)
    raise _wrong(variable, "NULL" if value is None else value)


def _number(variable: Variable, value: Value) -> Value:
    if isinstance(value, int):
        least, most = _RANGES.get(variable.name, (value, value))
        if not least <= value <= most:
            say(Condition.TRUNCATED_VALUE, variable.name, value)
        return max(least, min(value, most))
    if isinstance(value, float | Decimal) and variable.name in ("timestamp", "long_query_time"):
        return max(round(Decimal(value), 6), Decimal(0))
    raise InvalidStatement(Condition.WRONG_TYPE_FOR_VARIABLE, variable.name)


def _charset(variable: Variable, value: Value) -> Value:
    if value is None:
        if variable.name == "character_set_results":
            return None
        raise _wrong(variable, "NULL")
    found = charset_of(str(value))
    if found is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, value)
    return found.name


def sql_mode(value: Value) -> str:
    """A sql_mode in MySQL's order with combination modes opened up."""
    if isinstance(value, int):
        if value == 0:
            return ""
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, "sql_mode", value)
    names: dict[str, None] = {}
    for part in ("" if value is None else str(value)).upper().split(","):
        name = part.strip()
        if not name or name in IGNORED_SQL_MODES:
            continue
        if name not in SQL_MODES:
            raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, "sql_mode", part.strip())
        if name == "ANSI":
            names.update(dict.fromkeys(_ANSI))
        if name == "TRADITIONAL":
            names.update(dict.fromkeys(_TRADITIONAL))
        names[name] = None
    return ",".join(name for name in SQL_MODES if name in names)


TEXTS = ("collation_server", "default_collation_for_utf8mb4", "lc_time_names", "block_encryption_mode")
NUMBERS = (
    "auto_increment_increment", "auto_increment_offset",
    "max_allowed_packet", "group_concat_max_len", "div_precision_increment", "default_week_format",
)  # fmt: skip
"""What `settings_of` is given of the variables; from the third on those of `ResultSettings`, in its order."""
GLOBAL_TO_SET = frozenset({"max_allowed_packet", "net_buffer_length"})
"""A session has them as they were when it began."""
_RANGES = {
    "max_allowed_packet": (1024, 1 << 30),
    "group_concat_max_len": (4, (1 << 64) - 1),
    "div_precision_increment": (0, 30),
    "default_week_format": (0, 7),
    "auto_increment_increment": (1, 65535),
    "auto_increment_offset": (1, 65535),
    "timestamp": (0, 32_536_771_199),
}


@lru_cache(maxsize=256)
def settings_of(
    sql_mode: str, collation: str, foreign_key_checks: bool, time_zone: str, recursion_depth_max: int, client_codec: str,
    server_collation: str, utf8mb4_collation: str, locale: str, encryption_mode: str, number_step: int, number_offset: int, *results: Any
) -> tuple[Settings, Modes]:
    """What statements are planned and run with."""
    try:
        collation = canonical(collation)
    except InvalidStatement:
        # A character set that only the connection knows: compare by the default.
        collation = DEFAULT_COLLATION
    names = frozenset(name for name in sql_mode.split(",") if name)
    settings = Settings(
        names, collation, foreign_key_checks, time_zone,
        recursion_depth_max=recursion_depth_max, client_codec=client_codec, server_collation=server_collation,
        results=replace(
            ResultSettings(*results), collation=collation, utf8mb4_collation=utf8mb4_collation, locale=locale, encryption_mode=encryption_mode.lower()
        ),
    )  # fmt: skip
    return settings, replace(Modes.parse(sql_mode, time_zone), number_step=number_step, number_offset=number_offset)
