"""JSON_TABLE in a FROM: a table that is made when the statement runs, of the documents that the tables before it have.

Its rows come with the document that they are of, by which they are joined to the rows of the tables before; a document
that reads no column is joined to all. The documents are those of the tables that they are in, under the conditions of the query
that concern these tables alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.sql.plan import DocumentRows
from controller.sql.query.block import Block, From, Inner, Leaf, Left, own_ids
from controller.sql.query.fields import Field, Relation, computed_output, renamed_output
from controller.sql.query.keys import finish
from dataflow.errors import Unsupported
from dataflow.expressions.expression import Column, Expression, columns_of
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.functions.json_table import JsonTable, leaf_columns
from dataflow.plan.node import Base, tables_of
from dataflow.values.types import BLOB

if TYPE_CHECKING:
    from controller.sql.query.resolve import Resolver


@dataclass(slots=True)
class Documents:
    """One JSON_TABLE: `block` finds its documents, which `source` has."""

    table: int
    block: Block
    json_table: JsonTable

    def narrow(self, block: Block) -> None:
        """Take over the conditions of the query around, unless rows without a partner would become more by that."""
        ids = own_ids(self.block.source)
        if ids and not ids & _optional_ids(block.source):
            self.block.where += [each for each in block.where if columns_of(each) and columns_of(each) <= ids]

    def planned(self, resolver: Resolver) -> DocumentRows:
        return DocumentRows(finish(self.block, resolver.numbering, ()), self.json_table)


def document_leaf(
    resolver: Resolver, json_table: JsonTable, document: Expression, trees: list[From], alias: str
) -> tuple[Leaf, list[Field], list[Expression]]:
    """The table, its columns, and what joins it to `trees`, the tables before it."""
    numbering = resolver.numbering
    read = columns_of(document)
    sources = [each for each in trees if own_ids(each) & read]
    if read - {number for each in sources for number in own_ids(each)}:
        raise Unsupported("JSON_TABLE of a document that is outside of its FROM")
    value = cast(document, BLOB)
    output = numbering.fresh(BLOB)
    block = Block(Inner(sources, []), [], [(output, value)], [computed_output("document", value, True)], distinct=True)
    table = numbering.fresh_table()
    resolver.documents.append(Documents(table, block, json_table))
    key = numbering.fresh(BLOB)
    fields = [Field(key.index, "", BLOB, False, computed_output("", key, False), hidden=True)]
    for each in leaf_columns(json_table):
        column = numbering.fresh(each.type)
        described = renamed_output(computed_output(each.name, column, True), each.name, alias)
        fields.append(Field(column.index, each.name, each.type, True, described))
    base = Base(table, tuple(each.type for each in fields), ())
    leaf = Leaf(tuple(fields), relation=Relation(base, tuple(each.id for each in fields)))
    return leaf, fields, [call("=", value, Column(key.index, BLOB))] if read else []


def prior_documents(resolver: Resolver) -> tuple[list[tuple[int, DocumentRows]], list[tuple[int, DocumentRows]]]:
    """Those that are to be found before the recursive tables of the statement, and those that read these."""
    found = [(each.table, each.planned(resolver)) for each in resolver.documents]
    first = [each for each in found if all(table >= 0 for table in tables_of(each[1].documents.node))]
    return first, [each for each in found if each not in first]


def _optional_ids(source: From) -> set[int]:
    match source:
        case Leaf():
            return set()
        case Inner(items):
            return {number for each in items for number in _optional_ids(each)}
        case Left(left, right):
            return _optional_ids(left) | own_ids(right)
