"""The client library: lookups of maintained views, writes and SQL from Python.

    import millrace

    with millrace.connect("./millrace-data", database="shop") as db:
        totals = db.view("SELECT item, COUNT(*) AS sold FROM sales WHERE item = ? GROUP BY item")
        db.table("sales").insert(item="tea", price=3)
        totals.lookup("tea")                    # [("tea", 1)]

On the machine of the workers a lookup of a key that was asked for before reads shared memory:
no request, no waiting for writers. `connect_async` gives the same with coroutines. This package is the
public face of `backend.client`; other modules of the project may change from one version to the next.
"""

from backend.client import (
    AsyncDatabase,
    AsyncTransaction,
    AsyncView,
    Batch,
    ChangeSet,
    Database,
    Result,
    Table,
    Transaction,
    View,
    connect,
    connect_async,
)
from dataflow.errors import CorruptState, InvalidStatement, MillraceError, Retryable, Unsupported

__all__ = [
    "AsyncDatabase",
    "AsyncTransaction",
    "AsyncView",
    "Batch",
    "ChangeSet",
    "CorruptState",
    "Database",
    "InvalidStatement",
    "MillraceError",
    "Result",
    "Retryable",
    "Table",
    "Transaction",
    "Unsupported",
    "View",
    "connect",
    "connect_async",
]
