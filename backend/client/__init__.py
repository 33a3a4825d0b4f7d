"""The client library behind `millrace`: lookups of maintained views, writes and SQL from Python."""

from backend.client.async_database import AsyncDatabase, AsyncTransaction, connect_async
from backend.client.async_view import AsyncView
from backend.client.batch import Batch
from backend.client.changes import ChangeSet
from backend.client.database import Database, Table, Transaction, View, connect
from backend.client.statements import Result

__all__ = [
    "AsyncDatabase",
    "AsyncTransaction",
    "AsyncView",
    "Batch",
    "ChangeSet",
    "Database",
    "Result",
    "Table",
    "Transaction",
    "View",
    "connect",
    "connect_async",
]
