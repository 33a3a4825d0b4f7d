"""The resolution of column names: in the tables of a FROM, then in those of the queries around it.

`sources` are found by qualified names, `visible` by plain ones and by `*`: the two differ
after USING and NATURAL, which show a common column once. Common table expressions are names
of tables, visible from where they are declared on down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from controller.sql.plan import OutputColumn
from controller.sql.query.fields import Field
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression
from dataflow.plan.node import AggregateFunction


@dataclass(frozen=True, slots=True)
class NamedSource:
    alias: str
    database: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Visible:
    """A column under its plain name; `value` differs from the field for one that USING merged."""

    field: Field
    value: Expression


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A WITH entry: its query, its column names, and the entries that it may use itself.

    One that uses itself is `recursive`. `rows` are those of an entry that is a table at hand.
    """

    query: Any
    columns: tuple[str, ...]
    scope: dict[str, CommonTable]
    recursive: bool = False
    rows: PassingTable | None = None


@dataclass(frozen=True, slots=True)
class PassingTable:
    """A table that exists only while the statement runs, with its columns as clients see them."""

    table: int
    columns: tuple[OutputColumn, ...]


ALIAS = -1
"""The id of a field that is an item of a SELECT list around."""


@dataclass(slots=True)
class Names:
    """What names mean inside one query."""

    parent: Names | None = None
    database: str | None = None
    common: dict[str, CommonTable] = field(default_factory=dict)
    sources: list[NamedSource] = field(default_factory=list)
    visible: list[Visible] = field(default_factory=list)
    hidden: bool = False
    """Whether columns that no one declared may be named."""
    selected: Callable[[str], Expression | None] | None = None
    """The item of the SELECT list that a query inside may call by this name; columns come first."""
    aggregates: Callable[[AggregateFunction], Expression] | None = None
    """Takes an aggregate of this query that a query inside it has, in clauses where it may stand."""

    def add(self, source: NamedSource) -> None:
        for other in self.sources:
            if other.alias.lower() == source.alias.lower() and other.database == source.database:
                raise InvalidStatement(Condition.NONUNIQUE_TABLE, source.alias)
        self.sources.append(source)

    def own(self, name: str, table: str = "", database: str = "") -> list[Visible]:
        """The columns of this query's own FROM that the name may mean."""
        lowered = name.lower()
        if not table:
            return [each for each in self.visible if each.field.name.lower() == lowered]
        return [
            Visible(each, each.column)
            for source in self.sources
            if source.alias == table and (not database or source.database == database)
            for each in source.fields
            if each.name.lower() == lowered and (self.hidden or not each.hidden)
        ]

    def resolve(self, name: str, table: str, database: str, clause: str) -> Visible:
        written = ".".join(part for part in (database, table, name) if part)
        for names in (self, *self.around()):
            found = names.own(name, table, database)
            if len(found) > 1:
                raise InvalidStatement(Condition.AMBIGUOUS_COLUMN, written, clause)
            if found:
                return found[0]
            value = names.selected(name.lower()) if names is not self and names.selected and not table else None
            if value is not None:
                return Visible(Field(ALIAS, name, value.type, True, OutputColumn(name, value.type)), value)
        raise InvalidStatement(Condition.UNKNOWN_COLUMN, written, clause)

    def star(self, table: str, database: str) -> list[Visible]:
        if not table:
            if not self.sources:
                raise InvalidStatement(Condition.NO_TABLES_USED)
            return list(self.visible)
        for source in self.sources:
            if source.alias == table and (not database or source.database == database):
                return [Visible(each, each.column) for each in source.fields if not each.hidden]
        raise InvalidStatement(Condition.UNKNOWN_TABLE_DROP, table)

    def written(self, found: Visible) -> tuple[str, ...]:
        """How a query without `*` names one of its columns: with its table and, where two have that name, its database."""
        if found.value != found.field.column:
            return (found.field.name,)
        source = next(each for each in self.sources if found.field in each.fields)
        is_alone = sum(each.alias.lower() == source.alias.lower() for each in self.sources) == 1
        return (source.alias, found.field.name) if is_alone else (source.database, source.alias, found.field.name)

    def fields(self) -> Iterator[Field]:
        for source in self.sources:
            yield from source.fields

    def around(self) -> Iterator[Names]:
        """The names of the queries around this one, nearest first."""
        found = self.parent
        while found is not None:
            yield found
            found = found.parent

    def inside(self) -> Names:
        """The names for a subquery of this query."""
        return Names(self, self.database, self.common)

    def beside(self, common: dict[str, CommonTable] | None = None) -> Names:
        """The names for a derived table of this query: nothing of its FROM, but what is around."""
        return Names(self.parent, self.database, self.common if common is None else common)

