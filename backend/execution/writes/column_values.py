"""The parameters of a statement that is to be run for many rows, given by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dataflow.values.types import Value

Array = np.ndarray[Any, Any]
Column: TypeAlias = Sequence[Value] | Array | pa.Array


class ColumnValues(Sequence[Value]):
    """The values of many rows, one row's after the other's; a column can be had by `column`."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def column(self, number: int) -> Column:
        """One value of each row. Integers and packed moments may be an array of int64, and what Arrow has values for one of Arrow."""
        return self._columns[number]

    def __len__(self) -> int:
        return len(self._columns) * len(self._columns[0])

    def __iter__(self) -> Iterator[Value]:
        return chain.from_iterable(zip(*map(listed, self._columns), strict=True))

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]


def listed(column: Column) -> Sequence[Value]:
    """The values of a column, each by itself."""
    if isinstance(column, np.ndarray):
        found: list[Value] = column.tolist()
        return found
    if not isinstance(column, pa.Array):
        return column
    if pa.types.is_decimal(column.type):  # by way of their texts, which takes half the time
        return [None if each is None else Decimal(each) for each in column.cast(pa.string()).to_pylist()]
    values: list[Value] = column.to_pylist()
    return values
