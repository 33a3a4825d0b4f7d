"""Exchanges: where rows change shards between two stages, and the legs of code in between.

Every key lives on one shard (`dataflow.sharding`), and a lookup happens there. Rows are at a
*place*: the shard of the key that some of their columns have. A path of rows through an
operator has an `Exchange` wherever the key of the next lookup is not the place it is at; with
one shard, or where the key stays the same, there is none.

A *leg* is one generated function for the stages between two exchanges: it takes prefixes
and leaves others in the boxes of the legs that follow, one box for each shard. A prefix
that crosses an exchange is a flat tuple of the values that are still needed, its weight last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dataflow.expressions.source import Function, FunctionSource, Key
from dataflow.plan.node import Columns
from dataflow.runtime.operator import Operator
from dataflow.sharding import shard_of, shard_source
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Delta
from dataflow.values.types import INTEGERS, Kind, SqlType

Prefix = tuple[Any, ...]
Place = Columns | None
"""The columns whose key says on which shard rows are, in the order of the key; None: on any."""
Boxes = list[list[Prefix]]
Park = Callable[[Operator, Arrangement, "Leg", Key, Prefix], None]
"""A leg met a hole: the prefix goes on once the key is filled."""


@dataclass(frozen=True)
class Exchange:
    """The prefixes go to the shard where the key of these positions lives."""

    sources: Columns


@dataclass(eq=False)
class Leg:
    """A run of stages. Its rows come from `after`, or from the legs that feed it."""

    name: str
    operator: int
    """The operator whose rows it makes, by number."""
    boxes: Boxes
    after: Leg | None = None
    is_exchanged: bool = False
    """Whether rows cross from `after` to here."""
    run: Function = lambda rows: None
    reads: list[Operator] = field(default_factory=list)
    """The operators whose arrangements are looked up here."""
    parks: bool = False
    """Whether it may meet holes."""
    is_plain: bool = True
    """Whether its prefixes hold nothing that messages have to mark (DECIMALs)."""
    feeds: list[tuple[str, bool]] = field(default_factory=list)
    """The legs of other operators that its rows go to, and whether they cross an exchange."""
    is_broadcast: bool = False
    """Whether each prefix goes to all shards."""

    def take(self, shard: int) -> list[Prefix]:
        rows = self.boxes[shard]
        if rows:
            self.boxes[shard] = []
        return rows


@dataclass(frozen=True)
class Shards:
    """This shard among all of them, and what generated code needs of it."""

    shard: int
    count: int
    park: Park

    def owner(self, key: Key) -> int:
        """The shard on which a key lives."""
        return shard_of(key, self.count)

    def owner_source(self, code: FunctionSource, key: str, types: Sequence[SqlType]) -> str:
        owner = code.constant(self.owner)
        if len(types) == 1 and types[0].kind in INTEGERS:
            return shard_source(key, self.count, owner)
        return f"{owner}({key})"

    def send(self, code: FunctionSource, leg: Leg, target: str, values: Sequence[str]) -> None:
        """Leave a prefix in the box of the shard `target`."""
        code.line(f"{code.constant(leg.boxes)}[{target}].append(({', '.join(values)},))")

    def parking(self, code: FunctionSource, operator: Operator, arrangement: Arrangement, leg: Leg, key: str) -> list[str]:
        """The code for a hole; the prefix being worked on is `p`."""
        leg.parks = True
        park = code.constant(partial(self.park, operator, arrangement, leg))
        return [f"{park}({key}, p)", "continue"]


def is_plain(types: Iterable[SqlType]) -> bool:
    return not any(each.kind is Kind.DECIMAL for each in types)


def ordered_prefixes(rows: list[Prefix]) -> list[Prefix]:
    """As `dataflow.state.delta.ordered`, of flat rows that came from anywhere in any order."""
    for row in rows:
        if row[-1] <= 0:
            break
    else:
        return rows
    weights: dict[Prefix, int] = {}
    for row in rows:
        values = row[:-1]
        weights[values] = weights.get(values, 0) + row[-1]
    changes = [(*values, weight) for values, weight in weights.items() if weight]
    return [each for each in changes if each[-1] < 0] + [each for each in changes if each[-1] > 0]


def changes_of(rows: list[Prefix]) -> Delta:
    """Flat rows as a delta, in order."""
    return [(row[:-1], row[-1]) for row in ordered_prefixes(rows)]
