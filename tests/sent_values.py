"""Values as the bytes that a client of character set utf8mb4 is sent."""

from __future__ import annotations

from dataflow.values.conversion import Domain, convert, encode
from dataflow.values.types import TEXTS, SqlType, Value


def sent_bytes(value: Value, type_: SqlType) -> bytes | None:
    if value is None:
        return None
    return encode(str(value)) if type_.kind in TEXTS else bytes(convert(value, type_, Domain.BYTES))
