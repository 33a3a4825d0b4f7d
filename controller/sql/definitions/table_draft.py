"""A table while CREATE or ALTER TABLE changes it; `finish` checks it as a whole.

Columns and indexes get their ids here. Stored rows are never touched: when the columns or
their order change, `finish` appends a format, and a column added to a table that may have rows
says in `missing` what the old rows read as. What cannot be done so sets `copies`.
"""

from __future__ import annotations

from dataclasses import replace

from controller.sql.definitions.column_values import column_of, missing_value
from controller.sql.definitions.partition_rules import bound_partitions, renamed_in_partitions
from controller.sql.definitions.stored_expressions import bind, bind_default, columns_in, normalised
from controller.sql.definitions.table_elements import (
    CheckElement,
    ColumnElement,
    ForeignKeyElement,
    KeyElement,
    PartElement,
)
from controller.sql.expressions.constants import as_stored
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import (
    FUNCTIONAL_NAME_PREFIX,
    ROW_ID_NAME,
    Check,
    ForeignKey,
    Index,
    KeyPart,
    Table,
    TableColumn,
    is_functional,
)
from dataflow.values.types import BIGINT_UNSIGNED, BLOBS, INTEGERS, TEXTS, Kind

HIDDEN_KEY_NAME = "GEN_CLUST_INDEX"
"""What InnoDB calls the key of a table that declares none."""

_PREFIXABLE = TEXTS | BLOBS
_UNBOUNDED = {Kind.TINYTEXT, Kind.TEXT, Kind.MEDIUMTEXT, Kind.LONGTEXT, Kind.JSON} | (BLOBS - {Kind.BINARY, Kind.VARBINARY})


def is_hidden(column: TableColumn) -> bool:
    return column.name == ROW_ID_NAME


COLUMNS_MAX = 1017
"""As many as InnoDB allows."""


class TableDraft:
    def __init__(self, table: Table, settings: Settings, now: int, created: bool) -> None:
        self.table = table
        self.settings = settings
        self.now = now
        self.created = created
        self.columns = [column for column in table.columns if not is_hidden(column)]
        self.hidden = next((column for column in table.columns if is_hidden(column)), None)
        self.primary_key: Index | None = None if created or self.hidden else table.primary_key
        self.indexes = list(table.indexes)
        self.foreign_keys = list(table.foreign_keys)
        self.checks = list(table.checks)
        self.next_column_id = table.next_column_id
        self.next_index_id = table.next_index_id
        self.explicit_nulls: set[int] = set()
        self.copies = False
        """Whether rows have to be stored anew."""

    # -- columns

    def position(self, name: str) -> int | None:
        lowered = name.lower()
        return next((n for n, column in enumerate(self.columns) if column.name.lower() == lowered), None)

    def column(self, name: str, condition: Condition, *arguments: object) -> TableColumn:
        position = self.position(name)
        if position is None:
            raise InvalidStatement(condition, *(arguments or (name,)))
        return self.columns[position]

    def by_id(self, column_id: int) -> TableColumn:
        return next(column for column in self.columns if column.id == column_id)

    def add_column(self, element: ColumnElement, position: int | None = None) -> TableColumn:
        if self.position(element.name) is not None:
            raise InvalidStatement(Condition.DUPLICATE_COLUMN, element.name)
        if len(self.columns) >= COLUMNS_MAX:
            raise InvalidStatement(Condition.TOO_MANY_COLUMNS)
        column = column_of(element, self.next_column_id, self.table.collation, self.settings)
        if element.nullable is True:
            self.explicit_nulls.add(column.id)
        if not self.created:
            if column.auto_increment or column.generated_sql or column.default_sql:
                self.copies = True
            else:
                column = replace(column, missing=missing_value(column, self.now))
        self.next_column_id += 1
        self.columns.insert(len(self.columns) if position is None else position, column)
        return column

    def add_column_keys(self, element: ColumnElement) -> None:
        """The keys and checks written within a column's definition."""
        if element.key:
            self.add_key(KeyElement(element.key, "", (PartElement(element.name),)))
        for check in element.checks:
            self.add_check(check)

    def drop_column(self, name: str) -> None:
        column = self.column(name, Condition.CANT_DROP_FIELD_OR_KEY)
        lowered = column.name.lower()
        for other in self.columns:
            if other.generated_sql and other is not column and lowered in columns_in(other.generated_sql):
                raise InvalidStatement(Condition.GENERATED_DEPENDENCY, column.name)
        for key in self.foreign_keys:
            if lowered in (each.lower() for each in key.columns):
                raise InvalidStatement(Condition.COLUMN_NEEDED_BY_FOREIGN_KEY, column.name, key.name)
        if self.hidden is not None and any(part.column_id == column.id for part in self.table.primary_key.parts):
            self.copies = True
        if self.primary_key is not None and any(part.column_id == column.id for part in self.primary_key.parts):
            parts = tuple(part for part in self.primary_key.parts if part.column_id != column.id)
            self.primary_key = replace(self.primary_key, parts=parts) if parts else None
            self.copies = True
        self.columns.remove(column)
        self.indexes = [kept for index in self.indexes if (kept := self._without(index, column.id)) is not None]
        self.checks = [check for check in self.checks if columns_in(check.sql) != {lowered}]

    # -- keys

    def index(self, name: str) -> Index | None:
        lowered = name.lower()
        return next((index for index in self.indexes if index.name.lower() == lowered), None)

    def add_key(self, element: KeyElement) -> Index:
        kind = element.kind
        element = self._with_columns(element)
        parts = tuple(self._part(part, kind) for part in element.parts)
        ids = [part.column_id for part in parts]
        if len(set(ids)) != len(ids):
            repeated = next(part.column for part, each in zip(element.parts, ids) if ids.count(each) > 1)
            raise InvalidStatement(Condition.DUPLICATE_COLUMN, repeated)
        if kind == "PRIMARY":
            return self._set_primary_key(parts)
        name = element.name or self._index_name(self.by_id(ids[0]).name)
        if name.upper() == "PRIMARY":
            raise InvalidStatement(Condition.WRONG_INDEX_NAME, name)
        if self.index(name) is not None:
            raise InvalidStatement(Condition.DUPLICATE_KEY_NAME, name)
        stored_kind = kind if kind in ("FULLTEXT", "SPATIAL") else "BTREE"
        building = not self.created and stored_kind == "BTREE"
        index = Index(self.next_index_id, name, parts, kind == "UNIQUE", stored_kind, element.comment, building)
        self.next_index_id += 1
        self.indexes.append(index)
        return index

    def _with_columns(self, element: KeyElement) -> KeyElement:
        """A generated column that nobody sees for each expression, as MySQL does it."""
        if not any(part.expression for part in element.parts):
            return element
        if element.kind == "PRIMARY":
            raise InvalidStatement(Condition.FUNCTIONAL_PRIMARY_KEY)
        name = element.name or self._index_name("functional_index")
        parts = []
        for number, part in enumerate(element.parts):
            if part.expression:
                sql = normalised(part.expression, self.settings, self._names())
                found = bind(sql, replace(self.table, columns=tuple(self.columns)), self.settings, "functional index")
                hidden = f"{FUNCTIONAL_NAME_PREFIX}{name}!{number}!0"
                self.columns.append(
                    TableColumn(self.next_column_id, hidden, found.type, generated_sql=sql, generated_stored=True, invisible=True)
                )
                self.next_column_id += 1
                self.copies = not self.created
                part = replace(part, column=hidden)
            parts.append(part)
        return replace(element, name=name, parts=tuple(parts))

    def _set_primary_key(self, parts: tuple[KeyPart, ...]) -> Index:
        if self.primary_key is not None:
            raise InvalidStatement(Condition.MULTIPLE_PRIMARY_KEY)
        self.copies = not self.created
        for part in parts:
            column = self.by_id(part.column_id)
            if column.id in self.explicit_nulls:
                raise InvalidStatement(Condition.PRIMARY_CANT_HAVE_NULL)
            implicit = column.nullable and column.default is None
            self._replace(column, replace(column, nullable=False, has_default=column.has_default and not implicit))
        self.primary_key = Index(self.next_index_id, "PRIMARY", parts, unique=True)
        self.next_index_id += 1
        return self.primary_key

    def _replace(self, old: TableColumn, new: TableColumn) -> None:
        self.columns[self.columns.index(old)] = new

    def _part(self, part: PartElement, kind: str) -> KeyPart:
        column = self.column(part.column, Condition.KEY_COLUMN_MISSING)
        prefix = part.prefix
        if kind in ("FULLTEXT", "SPATIAL"):
            if kind == "FULLTEXT" and column.type.kind not in TEXTS:
                raise InvalidStatement(Condition.NO_FULL_TEXT_COLUMN, column.name)
            return KeyPart(column.id)
        length = column.type.length
        if length == 0 and column.type.kind in _PREFIXABLE and not column.nullable:
            raise InvalidStatement(Condition.CANT_INDEX, column.name)
        if prefix is not None:
            if column.type.kind not in _PREFIXABLE or prefix == 0 or (length is not None and prefix > length):
                raise InvalidStatement(Condition.WRONG_PREFIX_KEY)
            prefix = None if prefix == length else prefix
        elif column.type.kind in _UNBOUNDED:
            raise InvalidStatement(Condition.BLOB_KEY_WITHOUT_LENGTH, column.name)
        return KeyPart(column.id, prefix, part.descending)

    def _index_name(self, base: str) -> str:
        """MySQL's name for an index that was given none: col, col_2, col_3…"""
        name, number = base, 2
        while self.index(name) is not None or name.upper() == "PRIMARY":
            name, number = f"{base}_{number}", number + 1
        return name

    def drop_primary_key(self) -> None:
        if self.primary_key is None:
            raise InvalidStatement(Condition.CANT_DROP_FIELD_OR_KEY, "PRIMARY")
        self.primary_key = None
        self.copies = True

    def drop_key(self, name: str) -> None:
        """DROP INDEX, of the primary key if it is called so."""
        if name.upper() == "PRIMARY":
            self.drop_primary_key()
        else:
            self.drop_index(name)

    def drop_index(self, name: str) -> None:
        index = self.index(name)
        if index is None:
            raise InvalidStatement(Condition.CANT_DROP_FIELD_OR_KEY, name)
        others = [other for other in self.indexes if other is not index]
        for key in self.foreign_keys:
            if self._leads_with(index, key.columns) and not any(
                self._leads_with(other, key.columns) for other in (*others, *self._primary())
            ):
                raise InvalidStatement(Condition.INDEX_NEEDED_BY_FOREIGN_KEY, name)
        self.indexes = others
        used = {part.column_id for other in others for part in other.parts}
        self.columns = [column for column in self.columns if not is_functional(column) or column.id in used]

    def _without(self, index: Index, column_id: int) -> Index | None:
        """An index when a column is dropped: built anew without it, or gone if nothing is left."""
        parts = tuple(part for part in index.parts if part.column_id != column_id)
        if len(parts) == len(index.parts):
            return index
        if not parts:
            return None
        self.next_index_id += 1
        return replace(index, id=self.next_index_id - 1, parts=parts, building=index.kind == "BTREE")

    def _primary(self) -> tuple[Index, ...]:
        return () if self.primary_key is None else (self.primary_key,)

    def _leads_with(self, index: Index, columns: tuple[str, ...]) -> bool:
        names = [self.by_id(part.column_id).name.lower() for part in index.parts if part.prefix is None]
        return index.kind == "BTREE" and names[: len(columns)] == [name.lower() for name in columns]

    # -- constraints

    def add_foreign_key(self, element: ForeignKeyElement, database: str) -> ForeignKey:
        """Keep the key, and add the index that it needs. The parent is checked elsewhere."""
        for name in element.columns:
            self.column(name, Condition.KEY_COLUMN_MISSING)
        name = element.name or self._constraint_name("ibfk", [key.name for key in self.foreign_keys])
        columns = tuple(self.column(each, Condition.KEY_COLUMN_MISSING).name for each in element.columns)
        key = ForeignKey(
            name,
            columns,
            element.parent[0] or database,
            element.parent[1],
            element.parent_columns,
            element.on_delete,
            element.on_update,
        )
        self.foreign_keys.append(key)
        if not any(self._leads_with(index, columns) for index in (*self.indexes, *self._primary())):
            index_name = element.name or element.index_name or ""
            if index_name and self.index(index_name) is not None:
                index_name = ""
            self.add_key(KeyElement("KEY", index_name, tuple(PartElement(each) for each in columns)))
        return key

    def add_check(self, element: CheckElement) -> None:
        name = element.name or self._constraint_name("chk", [check.name for check in self.checks])
        if any(check.name.lower() == name.lower() for check in self.checks):
            raise InvalidStatement(Condition.DUPLICATE_CHECK, name)
        sql = normalised(element.sql, self.settings, self._names())
        placeholder = bind("1", self.table, self.settings, "")
        self.checks.append(Check(name, sql, placeholder, element.enforced))

    def _constraint_name(self, kind: str, taken: list[str]) -> str:
        stem = f"{self.table.name}_{kind}_"
        numbers = [int(name[len(stem) :]) for name in taken if name.startswith(stem) and name[len(stem) :].isdigit()]
        return f"{stem}{max(numbers, default=0) + 1}"

    def _names(self) -> dict[str, str]:
        return {column.name.lower(): column.name for column in self.columns}

    def rename_in_expressions(self, old: str, new: str) -> None:
        names = {old.lower(): new}
        self.checks = [replace(check, sql=normalised(check.sql, self.settings, names)) for check in self.checks]
        self.table = renamed_in_partitions(self.table, names, self.settings)
        self.columns = [
            replace(column, generated_sql=normalised(column.generated_sql, self.settings, names))
            if column.generated_sql
            else column
            for column in self.columns
        ]

    # -- the whole

    def finish(self) -> Table:
        if not self.columns:
            raise InvalidStatement(Condition.TABLE_WITHOUT_COLUMNS if self.created else Condition.CANT_REMOVE_ALL_COLUMNS)
        self._check_auto_increment()
        columns = list(self.columns)
        primary_key = self.primary_key
        if primary_key is None:
            if self.hidden is None:
                self.hidden = TableColumn(self.next_column_id, ROW_ID_NAME, BIGINT_UNSIGNED, nullable=False, invisible=True)
                self.next_column_id += 1
                primary_key = Index(self.next_index_id, HIDDEN_KEY_NAME, self._hidden_parts(self.hidden), unique=True)
                self.next_index_id += 1
            elif self.copies:
                primary_key = replace(self.table.primary_key, parts=self._hidden_parts(self.hidden))
            else:
                primary_key = self.table.primary_key
            columns.append(self.hidden)
        indexes = sorted(self.indexes, key=self._display_order)
        if self.created:
            # Numbered in the order they are shown in, so that equal definitions are equal tables.
            primary_key = replace(primary_key, id=1)
            indexes = [replace(index, id=number) for number, index in enumerate(indexes, 2)]
        layout = tuple(column.id for column in columns)
        formats = self.table.formats if self.table.formats[-1:] == (layout,) else (*self.table.formats, layout)
        table = replace(
            self.table,
            columns=tuple(columns),
            primary_key=primary_key,
            indexes=tuple(indexes),
            foreign_keys=tuple(self.foreign_keys),
            checks=tuple(self.checks),
            formats=formats,
            version=1 if self.created else self.table.version + 1,
            next_column_id=self.next_column_id,
            next_index_id=self.next_index_id,
        )
        return self._bound(table)

    def _hidden_parts(self, hidden: TableColumn) -> tuple[KeyPart, ...]:
        """The first key over integers, which needs no entries then, and the number of the row."""
        for index in self.indexes:
            columns = [self.by_id(part.column_id) for part in index.parts]
            # A column behind an expression goes with its index, and finds no rows.
            is_plain = all(column.type.kind in INTEGERS and not is_functional(column) for column in columns)
            if not index.unique and index.kind == "BTREE" and is_plain:
                return (*index.parts, KeyPart(hidden.id))
        return (KeyPart(hidden.id),)

    def _display_order(self, index: Index) -> int:
        """MySQL lists unique keys first, those without NULLs before the others, FULLTEXT last."""
        if index.kind != "BTREE":
            return 3
        if not index.unique:
            return 2
        return int(any(self.by_id(part.column_id).nullable for part in index.parts))

    def _check_auto_increment(self) -> None:
        counted = [column for column in self.columns if column.auto_increment]
        if not counted:
            return
        leading = {index.parts[0].column_id for index in (*self.indexes, *self._primary())}
        if len(counted) > 1 or counted[0].id not in leading:
            raise InvalidStatement(Condition.WRONG_AUTO_KEY)

    def _bound(self, table: Table) -> Table:
        """With the expressions bound to the columns' positions."""
        names = {column.name.lower(): column.name for column in table.columns}
        columns = []
        for column in table.columns:
            if column.generated_sql:
                sql = normalised(column.generated_sql, self.settings, names)
                found = bind(sql, table, self.settings, "generated column function")
                column = replace(column, generated_sql=sql, generated=found)
            elif column.default_sql:
                found, facts = bind_default(column.default_sql, table, self.settings)
                column = replace(column, default_expression=as_stored(found, column.type), default_facts=facts)
            columns.append(column)
        checks = tuple(
            replace(check, expression=bind(check.sql, table, self.settings, f"check constraint {check.name} expression"))
            for check in table.checks
        )
        return bound_partitions(replace(table, columns=tuple(columns), checks=checks), self.settings)
