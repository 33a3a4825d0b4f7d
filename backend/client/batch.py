"""Columns of many keys: what `lookup_columns` gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from backend.client.values import Rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """The row of each key that has one, column by column, in the order of the keys.

    `present` says which keys have a row. Numbers are numpy arrays, texts Arrow arrays; dates
    and times are numbers as they are stored. `nulls` has a mask for each column.
    """

    present: Array
    columns: dict[str, Any]
    nulls: dict[str, Array]

    def __len__(self) -> int:
        return int(np.count_nonzero(self.present))

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table, without the keys that have no row."""
        arrays = {}
        for name, values in self.columns.items():
            nulls = self.nulls[name]
            if not nulls.any():
                arrays[name] = pa.array(values) if isinstance(values, np.ndarray) else values
            elif isinstance(values, np.ndarray):
                arrays[name] = pa.array(values, mask=nulls)
            else:
                arrays[name] = pa.compute.if_else(pa.array(nulls), None, values)
        return pa.table(arrays)


def batch_of_rows(found: Sequence[Rows], names: Sequence[str]) -> Batch:
    """The same from rows, one key after the other."""
    if any(len(rows) > 1 for rows in found):
        raise ValueError("a key has several rows: use lookup_many")
    rows = [each[0] for each in found if each]
    columns, nulls = {}, {}
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        nulls[name] = np.array([each is None for each in values], bool)
        array = pa.array(values)
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            columns[name] = array.fill_null(0).to_numpy()
        else:
            columns[name] = array
    return Batch(np.array([bool(each) for each in found], bool), columns, nulls)
