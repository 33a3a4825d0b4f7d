"""A MySQL server by its URL: the millrace that a job talks to, or the server that rows are imported from."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pymysql

PORT = 3307
CONNECT_TIMEOUT_S = 20
_SCHEMES = ("mysql", "mariadb", "millrace")
_TLS_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    host: str
    port: int
    user: str
    password: str
    database: str | None = None
    tls_mode: str = "PREFERRED"
    tls_ca: str | None = None

    @classmethod
    def parse(cls, url: str, port: int = PORT, user: str = "", password: str = "") -> ServerAddress:
        """Of `mysql://user:password@host:port/database?sslMode=…&sslCa=…`; `jdbc:mysql://` and `jdbc:mariadb://` do, too.

        `port` is for a URL without one; `user` and `password` come before what the URL says.
        """
        parts = urlsplit(url.removeprefix("jdbc:"))
        database = unquote(parts.path.strip("/"))
        if parts.scheme not in _SCHEMES or not parts.hostname or "/" in database:
            raise ValueError("the url has to be mysql://[user:password@]host[:port]/database")
        found = {name.lower(): value for name, value in parse_qsl(parts.query)}
        mode = found.get("sslmode", "PREFERRED").upper().replace("-", "_")
        if mode not in _TLS_MODES:
            raise ValueError(f"sslMode has to be one of {', '.join(_TLS_MODES)}")
        return cls(
            parts.hostname,
            parts.port or port,
            user or found.get("user") or unquote(parts.username or "root"),
            password or found.get("password") or unquote(parts.password or ""),
            database or None,
            mode,
            found.get("sslca"),
        )

    def __repr__(self) -> str:
        """Without the password: it may be in a message or a plan."""
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database or ''}"

    def within(self, database: str | None) -> ServerAddress:
        return replace(self, database=database)

    def connect(self, **options: Any) -> Any:
        """A connection in UTC and strict mode, unless `options` of the driver say otherwise."""
        given = {
            "charset": "utf8mb4",
            "autocommit": True,
            "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
            "init_command": "SET time_zone = '+00:00'",
            "connect_timeout": CONNECT_TIMEOUT_S,
        }
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            database=self.database,
            **given | self.tls_options | options,
        )

    @property
    def tls_options(self) -> dict[str, Any]:
        """As drivers like PyMySQL take them."""
        if self.tls_mode == "DISABLED":
            return {"ssl_disabled": True}
        if self.tls_mode == "PREFERRED":
            return {}
        context = ssl.create_default_context(cafile=self.tls_ca)
        context.check_hostname = self.tls_mode == "VERIFY_IDENTITY"
        if self.tls_mode == "REQUIRED":
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}
