"""The client library: lookups of maintained views, writes and SQL from Python.

    from backend import connect

    with connect("./millrace-data", database="shop") as db:
        totals = db.view("SELECT item, COUNT(*) AS sold FROM sales WHERE item = ? GROUP BY item")
        db.table("sales").insert(item="tea", price=3)
        totals.lookup("tea")                    # [("tea", 1)]

On the machine of the workers a lookup of a key that was asked for before reads shared memory:
no request, no waiting for writers. `connect_async` gives the same with coroutines.
"""

from backend.client.async_database import AsyncDatabase, AsyncTransaction, connect_async
from backend.client.async_view import AsyncView
from backend.client.batch import Batch
from backend.client.database import Database, Table, Transaction, View, connect
from backend.client.statements import Result

__all__ = [
    "AsyncDatabase",
    "AsyncTransaction",
    "AsyncView",
    "Batch",
    "Database",
    "Result",
    "Table",
    "Transaction",
    "View",
    "connect",
    "connect_async",
]
