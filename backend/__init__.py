"""What runs: worker processes inside Spark, transport, statement execution, supervisor, command line.

For applications, `connect` and `connect_async` of the client library (`backend.client`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backend.client import connect, connect_async

__all__ = ["connect", "connect_async"]


def __getattr__(name: str) -> Any:
    # Not imported before it is asked for: every process imports this package.
    if name in __all__:
        from backend import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
