"""Where a data source connects to, from its options, named as Spark's JDBC source names them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pymysql

PORT = 3307
CONNECT_TIMEOUT_S = 10
_TLS_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """What `mysql://user:password@host:port/database?sslMode=…&sslCa=…` says; `jdbc:mysql://` and `jdbc:mariadb://` do, too."""

    host: str
    port: int
    user: str
    password: str
    database: str | None
    tls_mode: str = "PREFERRED"
    tls_ca: str | None = None

    def __repr__(self) -> str:
        """Without the password: it may be in a message or a plan."""
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database or ''}"

    def connect(self, unbuffered: bool = False) -> Any:
        """A connection in UTC and strict mode; `unbuffered`: rows are read as they are asked for."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            database=self.database,
            charset="utf8mb4",
            autocommit=True,
            sql_mode="STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
            init_command="SET time_zone = '+00:00'",
            connect_timeout=CONNECT_TIMEOUT_S,
            cursorclass=pymysql.cursors.SSCursor if unbuffered else pymysql.cursors.Cursor,
            **self._tls(),
        )

    def _tls(self) -> dict[str, Any]:
        if self.tls_mode == "DISABLED":
            return {"ssl_disabled": True}
        if self.tls_mode == "PREFERRED":
            return {}
        if self.tls_mode == "REQUIRED":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return {"ssl": context}
        context = ssl.create_default_context(cafile=self.tls_ca)
        context.check_hostname = self.tls_mode == "VERIFY_IDENTITY"
        return {"ssl": context}


def address_of(options: Mapping[str, str]) -> ServerAddress:
    url = options.get("url", "")
    parts = urlsplit(url.removeprefix("jdbc:"))
    if parts.scheme not in ("mysql", "mariadb", "millrace") or not parts.hostname:
        raise ValueError("option url has to be mysql://[user:password@]host[:port]/database")
    found = {name.lower(): value for name, value in parse_qsl(parts.query)}
    mode = found.get("sslmode", "PREFERRED").upper().replace("-", "_")
    if mode not in _TLS_MODES:
        raise ValueError(f"sslMode has to be one of {', '.join(_TLS_MODES)}")
    return ServerAddress(
        parts.hostname,
        parts.port or PORT,
        options.get("user") or found.get("user") or unquote(parts.username or "root"),
        options.get("password") or found.get("password") or unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")) or None,
        mode,
        found.get("sslca"),
    )


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def is_set(options: Mapping[str, str], name: str, default: bool = False) -> bool:
    value = options.get(name, str(default)).strip().lower()
    if value not in ("true", "false"):
        raise ValueError(f"option {name} has to be true or false")
    return value == "true"


def whole_number(options: Mapping[str, str], name: str, default: int) -> int:
    try:
        found = int(options.get(name, str(default)))
    except ValueError:
        found = -1
    if found < 0:
        raise ValueError(f"option {name} has to be a whole number")
    return found
