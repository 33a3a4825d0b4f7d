"""A table or named view as the source of a change feed: columns, the reading of recorded rows, and the followed view.

A table's changes are recorded as its rows are stored. A named view is followed through a maintained view of its own, which has
all of its rows, by a number computed from them. Nothing can be looked up by such a number before all rows are known, so it is
always full; and as a few rows share a number, what an epoch changes is found without looking at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend.execution.answering.decision.maintained import obstacle
from backend.views.view_definition import ViewDefinition, rows_decoder
from controller.catalog import Catalog, CatalogView
from controller.sql.natural_key import natural_key
from controller.sql.parameters import Parameters
from controller.sql.plan import OutputColumn, Query
from controller.sql.planner import parse_statement
from controller.sql.query import plan_query
from controller.sql.query.one_table import over_one_table
from controller.sql.settings import DEFAULT_SETTINGS
from controller.sql.text.lexer import quoted
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.compile import compile_scalar
from dataflow.plan.node import Join
from dataflow.schema import Table
from dataflow.values.types import Row
from persistence.layout import TableWriter

BUCKETS = 4096
"""So many different numbers the rows of a followed view have."""


@dataclass(frozen=True, slots=True)
class FeedSource:
    """`feed` is the id of the table or named view; `rows` reads recorded rows; `view` is what is followed, None for a table."""

    feed: int
    name: str
    catalog_version: int
    columns: tuple[OutputColumn, ...]
    rows: Callable[[Sequence[bytes]], list[Row]]
    view: ViewDefinition | None


def feed_source(catalog: Catalog, schema: str | None, name: str) -> FeedSource:
    """Of `table` or `database.table`, with or without backquotes."""
    database, _, last = name.replace("`", "").rpartition(".")
    found_in = database or schema
    if found_in is None:
        raise InvalidStatement(Condition.NO_DB_SELECTED)
    relation = f"{quoted(found_in)}.{quoted(last)}"
    query = _planned(f"SELECT * FROM {relation}", catalog)
    own = [each for each in query.views if (each.database.lower(), each.name.lower()) == (found_in.lower(), last.lower())]
    if own:
        return _of_view(catalog, own[0], relation, query)
    one = over_one_table(query)
    if one is None or one.table is None or one.table.id < 0:
        raise Unsupported(f"changes of {found_in}.{last}, which is not stored")
    return _of_table(catalog, one.table, one)


def select_of(name: str) -> str:
    """What an account has to be allowed to read."""
    return "SELECT * FROM " + ".".join(quoted(each) for each in name.replace("`", "").rsplit(".", 1))


def _planned(sql: str, catalog: Catalog) -> Query:
    return plan_query(parse_statement(sql), catalog, None, DEFAULT_SETTINGS, Parameters([]))


def _of_table(catalog: Catalog, table: Table, query: Query) -> FeedSource:
    codec = TableWriter(table).codec
    outputs = [compile_scalar(each) for each in query.outputs]

    def rows(stored: Sequence[bytes]) -> list[Row]:
        return [tuple([output(row, ()) for output in outputs]) for row in codec.decode_rows(stored, b"")]

    return FeedSource(table.id, f"{table.database}.{table.name}", catalog.version, query.columns, rows, None)


def _of_view(catalog: Catalog, view: CatalogView, relation: str, plain: Query) -> FeedSource:
    names = [each.name for each in plain.columns]
    key = natural_key(f"SELECT * FROM {relation}", catalog, None) or names
    number = f"CRC32(CONCAT_WS(',', {', '.join(quoted(each) for each in key)})) % {BUCKETS}"
    query = _planned(f"SELECT {', '.join(quoted(each) for each in names)}, {number} FROM {relation}", catalog)
    name = f"{view.database}.{view.name}"
    reason = obstacle(query)
    if not reason and (query.windows or query.default is not None or query.limit is not None or query.distinct):
        reason = "it has more than joins, conditions and groups"
    if reason:
        raise Unsupported(f"changes of the view {name}: {reason}")
    node = Join((query.node,), filter=query.filter, outputs=query.outputs)
    definition = ViewDefinition(node, (len(names),), query.tables, (), query.views)
    decode = rows_decoder(node.types).decode

    def rows(recorded: Sequence[bytes]) -> list[Row]:
        return [row[:-1] for row in decode(_listed(recorded))]

    return FeedSource(view.id, name, catalog.version, plain.columns, rows, definition)


def _listed(rows: Sequence[bytes]) -> bytes:
    """Encoded rows as one list of them."""
    return b"\xdd" + len(rows).to_bytes(4, "big") + b"".join(rows)
