"""Writes of one row that a worker runs by itself: made known once, then sent as parameters; see `backend.clustering.point_writes`.

Structs instead of dataclasses: they are made for each turn of an adapter's event loop.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dataflow.commit.epoch_messages import TransactionId

Plain = int | float | str | bytes | None
"""What parameters are: what msgpack carries as it is."""


class AddStatement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Make a statement known; answered by Done."""

    name: bytes
    definition: bytes


class RunStatements(msgspec.Struct, frozen=True, array_like=True):
    """Run a statement once for each of `rows`, in the next epoch, as one transaction; answered by what became of that.

    Answered by UnknownStatement if it has to be made known first.
    """

    transaction: TransactionId
    settled: int
    statement: bytes
    rows: list[tuple[Any, ...]]
    """Of `Plain` values: what msgpack has beyond these is no parameter of a statement that is sent."""


class UnknownStatement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """It was not made known, or has been forgotten."""
