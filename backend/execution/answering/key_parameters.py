"""Which parameters of a query are the keys that it asks for, where they are that as they come and one view serves all."""

from __future__ import annotations

from dataclasses import dataclass

from backend.execution.answering.query import CompiledQuery
from backend.execution.answering.viewing import QueryViews
from backend.shared_memory.shared_key import KeyNaming
from dataflow.expressions.expression import Parameter
from dataflow.values.types import BIGINT, INTEGERS, STRINGS, TEXTS


@dataclass(frozen=True, slots=True)
class Alike:
    """Keys of several integer columns that are alike but in the one at `place`: the parameters that are its `numbers`, and the `others`' values."""

    place: int
    numbers: tuple[int, ...]
    others: tuple[int, ...]


def key_numbers(query: CompiledQuery, views: QueryViews) -> tuple[int, ...]:
    """The parameters that are the keys, if keys are nothing but integers and one view serves all; else none."""
    keys = query.query.keys
    if not views.is_one or len(keys) != 1:
        return ()
    values = [value for value in keys[0].values if isinstance(value, Parameter) and value.type == BIGINT]
    naming = KeyNaming(query.query.node.types, query.key_columns)
    if not naming.is_exact or len(values) < len(keys[0].values):
        return ()
    return tuple([value.index for value in values])


def alike_keys(query: CompiledQuery, views: QueryViews) -> Alike | None:
    """How the parameters are the keys, if these are of several columns, nothing but integers, and one view serves all."""
    columns, types = query.key_columns, query.query.node.types
    keys = {key.column: [each for each in key.values if isinstance(each, Parameter) and each.type == BIGINT] for key in query.query.keys}
    if not views.is_one or views.choices or len(columns) < 2 or len(query.query.keys) > len(columns):
        return None
    if any(types[key.column].kind not in INTEGERS or len(keys[key.column]) < len(key.values) for key in query.query.keys):
        return None
    place = max(range(len(columns)), key=lambda each: len(keys[columns[each]]))
    others = [keys[column] for column in (*columns[:place], *columns[place + 1 :])]
    if any(len(each) > 1 for each in others):
        return None
    numbers = keys[columns[place]]
    return Alike(place, tuple([each.index for each in numbers]), tuple([each[0].index for each in others]))


def single_key(query: CompiledQuery, views: QueryViews) -> tuple[int, ...]:
    """The parameters that are the one key, in the order of its columns, if they are that as they come; else none."""
    columns, types, given = query.key_columns, query.query.node.types, {}
    for key in query.query.keys:
        value = key.values[0] if len(key.values) == 1 else None
        kind = types[key.column].kind
        if not isinstance(value, Parameter) or key.column in given:
            return ()
        if not (kind in INTEGERS and value.type == BIGINT) and not (kind in TEXTS and value.type.kind in STRINGS):
            return ()
        given[key.column] = value.index
    return tuple([given[column] for column in columns]) if views.is_one and not views.choices and len(given) == len(columns) else ()
