"""The functions that make a scalar subquery's value."""

from __future__ import annotations

from typing import Any

from dataflow.errors import Condition
from dataflow.expressions.notices import refuse
from dataflow.functions.registry import function
from dataflow.values.conversion import Domain


@function(
    "single row",
    arguments=(Domain.INTEGER, Domain.ANY),
    nulls=True,
    result=lambda arguments: arguments[1].type,
    deterministic=False,
)
def single_row(count: int | None, value: Any) -> Any:
    """`value`, unless it stands for several rows: then an error, or NULL under IGNORE."""
    if count is not None and count > 1:
        refuse(Condition.SUBQUERY_MORE_THAN_ONE_ROW)
        return None
    return value
