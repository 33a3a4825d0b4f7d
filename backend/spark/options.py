"""The options of the data source, named as Spark's JDBC source names them."""

from __future__ import annotations

from collections.abc import Mapping

from backend.network.server_address import ServerAddress


def address_of(options: Mapping[str, str]) -> ServerAddress:
    return ServerAddress.parse(options.get("url", ""), user=options.get("user", ""), password=options.get("password", ""))


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
