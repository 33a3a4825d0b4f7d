"""The parameters of a statement that is to be run for many rows, given by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dataflow.values.types import Value

Array = np.ndarray[Any, Any]


class ColumnValues(Sequence[Value]):
    """The values of many rows, one row's after the other's; a column can be had by `column`."""

    def __init__(self, columns: Sequence[Sequence[Value] | Array]) -> None:
        self._columns = columns

    def column(self, number: int) -> Sequence[Value] | Array:
        """One value of each row. Integers may be an array."""
        return self._columns[number]

    def __len__(self) -> int:
        return len(self._columns) * len(self._columns[0])

    def __iter__(self) -> Iterator[Value]:
        lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in self._columns]
        return chain.from_iterable(zip(*lists, strict=True))

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]
