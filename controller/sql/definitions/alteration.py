"""ALTER TABLE: clauses applied to a draft in the order of `alteration_clauses`, checked as a whole at the end."""

from __future__ import annotations

from dataclasses import replace

from controller.catalog import Catalog, CatalogChange
from controller.sql.definitions import partition_changes
from controller.sql.definitions.alteration_clauses import accept_way, ordered_clauses, read_order
from controller.sql.definitions.column_values import column_of, with_default
from controller.sql.definitions.foreign_keys import check_children, check_parents, followers, touched_parents
from controller.sql.definitions.table_copies import copied
from controller.sql.definitions.table_draft import TableDraft
from controller.sql.definitions.table_elements import (
    CheckElement,
    ColumnElement,
    ForeignKeyElement,
    KeyElement,
    at_constraint,
    read_column,
    read_constraint,
    read_default,
    read_definition,
)
from controller.sql.definitions.table_options import TableOptions, read_option
from controller.sql.definitions.temporary import is_taken
from controller.sql.definitions.type_changes import keeps_stored_values
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.schema import ForeignKey, Table, TableColumn

_PROVISIONAL = "#renamed-"


def alter_table(
    cursor: TokenReader, table: Table, catalog: Catalog, settings: Settings, now: int, database: str | None
) -> CatalogChange:
    """`database` is the session's: where a new name belongs."""
    alteration = _Alteration(cursor, table, catalog, settings, now, database)
    return alteration.plan()


class _Alteration:
    def __init__(
        self, cursor: TokenReader, table: Table, catalog: Catalog, settings: Settings, now: int, database: str | None
    ) -> None:
        self._database = database
        self.cursor = cursor
        self.catalog = catalog
        self.settings = settings
        self.old = table
        self.draft = TableDraft(table, settings, now, created=False)
        self.new_name = (table.database, table.name)
        self.options = TableOptions()
        self.renamed_columns: dict[str, str] = {}
        self.added_keys: list[ForeignKey] = []
        self._taken_over: list[str] = []

    def plan(self) -> CatalogChange:
        cursor = self.cursor
        left_out = None
        if partition_changes.at_partition_change(cursor):
            partitioning, left_out = partition_changes.read_partition_change(cursor, self.old, self.settings)
            self.draft.table = replace(self.draft.table, partitioning=partitioning)
            self.draft.copies = left_out is not None
        else:
            for mark in ordered_clauses(cursor):
                cursor.back_to(mark)
                self._clause()
                while not cursor.at_end and not cursor.at(","):
                    self._option()  # options need no comma between them
        self._finish_names()
        self.draft.table = self.options.apply(self.draft.table)
        table = self.draft.finish()
        check_children(self.old, table, self.catalog, self.settings.foreign_key_checks)
        if self.new_name != (table.database, table.name):
            if is_taken(self.catalog, self.new_name, table):
                raise InvalidStatement(Condition.TABLE_EXISTS, self.new_name[1])
            self.catalog.database(self.new_name[0])
            table = replace(table, database=self.new_name[0], name=self.new_name[1])
        keys = [key for key in table.foreign_keys if key.name in {each.name for each in self.added_keys}]
        check_parents(table, keys, self.catalog, self.settings.foreign_key_checks)
        old_ids = {index.id for index in self.old.indexes}
        builds = tuple((table.id, index.id) for index in table.indexes if index.building and index.id not in old_ids)
        changed = {each.id: each for each in touched_parents(keys, table, self.catalog)}
        changed |= {each.id: each for each in followers(self.old, table, self.catalog, self.renamed_columns)}
        checks = tuple((table.id, key.name) for key in keys if self.settings.foreign_key_checks)
        if self.draft.copies:
            change = copied(self.old, table, self.catalog, self.settings, left_out)
            new_id = change.copies[0].table.id
            return replace(change, tables_put=tuple(changed.values()), checks=tuple((new_id, name) for _, name in checks))
        counters = () if self.options.auto_increment is None else (table.id,)
        return CatalogChange(tables_put=(table, *changed.values()), builds=builds, checks=checks, counters=counters)

    def _clause(self) -> None:
        cursor = self.cursor
        match cursor.token.upper:
            case "ADD":
                cursor.next()
                self._add()
            case "DROP":
                cursor.next()
                self._drop()
            case "RENAME":
                cursor.next()
                self._rename()
            case "ALTER":
                cursor.next()
                self._alter()
            case "MODIFY" | "CHANGE":
                self._change(cursor.next().upper == "CHANGE")
            case "CONVERT":
                self._convert()
            case "ORDER":
                read_order(cursor, self.draft.columns)
            case "ENABLE" | "DISABLE":
                cursor.next()
                cursor.expect("KEYS")
            case "FORCE":
                cursor.next()
            case "ALGORITHM" | "LOCK":
                accept_way(cursor)
            case "WITH" | "WITHOUT":
                cursor.next()
                cursor.expect("VALIDATION")
            case _:
                self._option()

    def _option(self) -> None:
        if self.cursor.at("PARTITION", "BY") or self.cursor.at("REMOVE", "PARTITIONING"):
            partitioning = partition_changes.read_repartitioning(self.cursor, self.old)
            self.draft.table = replace(self.draft.table, partitioning=partitioning)
            self.draft.copies |= partitioning is not None  # a row may turn out to have no partition
            return
        options = read_option(self.cursor, self.options)
        if options is None:
            raise self.cursor.error()
        self.options = options

    # -- ADD

    def _add(self) -> None:
        cursor = self.cursor
        if at_constraint(cursor):
            self._add_constraint()
            return
        cursor.accept("COLUMN")
        self._if_not_exists()
        if cursor.accept("("):
            while True:
                if at_constraint(cursor):
                    self._add_constraint()
                else:
                    self._add_column(read_column(cursor, self.settings), None)
                if not cursor.accept(","):
                    break
            cursor.expect(")")
            return
        element = read_column(cursor, self.settings)
        self._add_column(element, self._place())

    def _if_not_exists(self) -> None:
        if self.cursor.at("IF", "NOT", "EXISTS"):
            raise self.cursor.error()

    def _add_column(self, element: ColumnElement, position: int | None) -> None:
        self.draft.add_column(element, position)
        self.draft.add_column_keys(element)

    def _place(self) -> int | None:
        """FIRST or AFTER column, as a position."""
        if self.cursor.accept("FIRST"):
            return 0
        if self.cursor.accept("AFTER"):
            name = self.cursor.identifier()
            position = self.draft.position(name)
            if position is None:
                raise InvalidStatement(Condition.UNKNOWN_COLUMN, name, self.old.name)
            return position + 1
        return None

    def _add_constraint(self) -> None:
        element = read_constraint(self.cursor)
        match element:
            case KeyElement():
                self.draft.add_key(element)
            case CheckElement():
                self.draft.add_check(element)
            case ForeignKeyElement():
                self.added_keys.append(self.draft.add_foreign_key(element, self.old.database))

    # -- DROP

    def _drop(self) -> None:
        cursor = self.cursor
        draft = self.draft
        if cursor.accept_any("INDEX", "KEY"):
            draft.drop_key(cursor.identifier())
        elif cursor.accept("PRIMARY", "KEY"):
            draft.drop_primary_key()
        elif cursor.accept("FOREIGN", "KEY"):
            self._drop_foreign_key(cursor.identifier(), Condition.CANT_DROP_FIELD_OR_KEY)
        elif cursor.accept("CHECK"):
            self._drop_check(cursor.identifier(), Condition.CHECK_MISSING)
        elif cursor.accept("CONSTRAINT"):
            self._drop_constraint(cursor.identifier())
        else:
            cursor.accept("COLUMN")
            name = cursor.identifier()
            for child, key in self.catalog.references_to(self.old.database, self.old.name):
                if name.lower() in (each.lower() for each in key.parent_columns):
                    raise InvalidStatement(Condition.COLUMN_NEEDED_BY_CHILD, name, key.name, child.name)
            draft.drop_column(name)
            cursor.accept_any("RESTRICT", "CASCADE")

    def _drop_foreign_key(self, name: str, condition: Condition) -> None:
        kept = [key for key in self.draft.foreign_keys if key.name.lower() != name.lower()]
        if len(kept) == len(self.draft.foreign_keys):
            raise InvalidStatement(condition, name)
        self.draft.foreign_keys = kept

    def _drop_check(self, name: str, condition: Condition) -> None:
        kept = [check for check in self.draft.checks if check.name.lower() != name.lower()]
        if len(kept) == len(self.draft.checks):
            raise InvalidStatement(condition, name)
        self.draft.checks = kept

    def _drop_constraint(self, name: str) -> None:
        lowered = name.lower()
        if any(check.name.lower() == lowered for check in self.draft.checks):
            self._drop_check(name, Condition.CONSTRAINT_MISSING)
        elif any(key.name.lower() == lowered for key in self.draft.foreign_keys):
            self._drop_foreign_key(name, Condition.CONSTRAINT_MISSING)
        elif (index := self.draft.index(name)) is not None and index.unique:
            self.draft.drop_index(name)
        else:
            raise InvalidStatement(Condition.CONSTRAINT_MISSING, name)

    # -- RENAME, ALTER COLUMN, CHANGE, MODIFY, CONVERT

    def _rename(self) -> None:
        cursor = self.cursor
        if cursor.accept("COLUMN"):
            old = cursor.identifier()
            cursor.expect("TO")
            new = cursor.identifier()
            column = self.draft.column(old, Condition.UNKNOWN_COLUMN, old, self.old.name)
            self._replace(column, replace(column, name=new))
        elif cursor.accept_any("INDEX", "KEY"):
            old = cursor.identifier()
            cursor.expect("TO")
            new = cursor.identifier()
            if "primary" in (old.lower(), new.lower()):
                raise InvalidStatement(Condition.WRONG_INDEX_NAME, "primary")
            index = self.draft.index(old)
            if index is None:
                raise InvalidStatement(Condition.KEY_DOES_NOT_EXIST, old, self.old.name)
            if self.draft.index(new) not in (None, index):
                raise InvalidStatement(Condition.DUPLICATE_KEY_NAME, new)
            self.draft.indexes[self.draft.indexes.index(index)] = replace(index, name=new)
        else:
            cursor.accept_any("TO", "AS", "=")
            database, name = cursor.qualified_name()
            database = database or self._database
            if not database:
                raise InvalidStatement(Condition.NO_DB_SELECTED)
            self.new_name = (database, name)

    def _replace(self, old: TableColumn, new: TableColumn) -> None:
        """Put `new` where `old` is, and carry its name over to all that mentions it.

        A name that is another column's is taken over at the end, when that one may have a new name, too.
        """
        draft = self.draft
        if new.name.lower() != old.name.lower() and draft.position(new.name) is not None:
            self._taken_over.append(new.name)
            new = replace(new, name=_PROVISIONAL + new.name)
        draft.columns[draft.columns.index(old)] = new
        if new.name == old.name:
            return
        first = next((name for name, now in self.renamed_columns.items() if now == old.name), old.name.lower())
        self.renamed_columns[first] = new.name
        draft.rename_in_expressions(old.name, new.name)
        draft.foreign_keys = [self._key_renamed(key, old.name, new.name) for key in draft.foreign_keys]

    def _finish_names(self) -> None:
        for name in self._taken_over:
            if self.draft.position(name) is not None:
                raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
            column = self.draft.column(_PROVISIONAL + name, Condition.DUPLICATE_COLUMN, name)
            self._replace(column, replace(column, name=name))

    def _key_renamed(self, key: ForeignKey, old: str, new: str) -> ForeignKey:
        columns = tuple(new if each.lower() == old.lower() else each for each in key.columns)
        parents = key.parent_columns
        if (key.parent_database, key.parent_table) == (self.old.database, self.old.name):
            parents = tuple(new if each.lower() == old.lower() else each for each in parents)
        return replace(key, columns=columns, parent_columns=parents)

    def _alter(self) -> None:
        cursor = self.cursor
        if cursor.accept("INDEX"):
            cursor.identifier()
            if not cursor.accept_any("VISIBLE", "INVISIBLE"):
                raise cursor.error()
            return
        if cursor.accept_any("CHECK", "CONSTRAINT"):
            name = cursor.identifier()
            enforced = not cursor.accept("NOT")
            cursor.expect("ENFORCED")
            if enforced:
                raise Unsupported("ALTER CHECK … ENFORCED")
            self.draft.checks = [
                replace(check, enforced=False) if check.name.lower() == name.lower() else check
                for check in self.draft.checks
            ]
            return
        cursor.accept("COLUMN")
        name = cursor.identifier()
        column = self.draft.column(name, Condition.UNKNOWN_COLUMN, name, self.old.name)
        if cursor.accept("SET", "DEFAULT"):
            self._replace(column, with_default(column, read_default(cursor), self.settings))
        elif cursor.accept("DROP", "DEFAULT"):
            plain = with_default(column, None, self.settings)
            self._replace(column, replace(plain, has_default=False))
        elif word := (cursor.accept("SET") and cursor.accept_any("VISIBLE", "INVISIBLE")):
            self._replace(column, replace(column, invisible=word == "INVISIBLE"))
        else:
            raise cursor.error()

    def _change(self, renames: bool) -> None:
        """CHANGE and MODIFY: a new definition; rows are stored anew if their values mean something else in it."""
        cursor = self.cursor
        cursor.accept("COLUMN")
        old_name = cursor.identifier()
        column = self.draft.column(old_name, Condition.UNKNOWN_COLUMN, old_name, self.old.name)
        element = read_definition(cursor, cursor.identifier() if renames else column.name, self.settings)
        position = self._place()
        changed = column_of(element, column.id, self.draft.table.collation, self.settings)
        primary = self.draft.primary_key
        if primary is not None and any(part.column_id == column.id for part in primary.parts):
            if element.nullable is True:
                raise InvalidStatement(Condition.PRIMARY_CANT_HAVE_NULL)
            implicit = changed.nullable and changed.default is None
            changed = replace(changed, nullable=False, has_default=changed.has_default and not implicit)
        changed = replace(changed, missing=column.missing)
        self._check_change(column, changed)
        self._replace(column, changed)
        if position is not None:
            at = self.draft.columns.index(changed)
            del self.draft.columns[at]
            self.draft.columns.insert(position - (at < position), changed)
        self.draft.add_column_keys(element)

    def _check_change(self, old: TableColumn, new: TableColumn) -> None:
        indexed = any(
            part.column_id == old.id
            for index in (self.draft.table.primary_key, *self.draft.indexes)
            for part in index.parts
        )
        if bool(old.generated_sql) != bool(new.generated_sql) or (
            old.generated_sql and old.generated_sql.replace("`", "") != new.generated_sql.replace("`", "")
        ):
            self.draft.copies = True
        if not keeps_stored_values(old.type, new.type, indexed) and self.settings.foreign_key_checks:
            self._check_keys(old.name)
        if not keeps_stored_values(old.type, new.type, indexed) or (old.nullable and not new.nullable):
            self.draft.copies = True
        if new.auto_increment and not old.auto_increment:
            self.draft.copies = True

    def _check_keys(self, name: str) -> None:
        """Both ends of a foreign key keep their type."""
        for key in self.draft.foreign_keys:
            if name.lower() in (each.lower() for each in key.columns):
                raise InvalidStatement(Condition.COLUMN_IN_FOREIGN_KEY, name, key.name)
        for child, key in self.catalog.references_to(self.old.database, self.old.name):
            if name.lower() in (each.lower() for each in key.parent_columns):
                raise InvalidStatement(Condition.COLUMN_IN_CHILD_KEY, name, key.name, f"{child.database}.{child.name}")

    def _convert(self) -> None:
        """CONVERT TO CHARACTER SET."""
        cursor = self.cursor
        cursor.expect("CONVERT", "TO")
        options = read_option(cursor, TableOptions())
        if options is None:
            raise cursor.error()
        if options.charset is None:  # DEFAULT: that of the database
            collation = self.catalog.database(self.old.database).collation
            options = replace(options, collation=collation)
        if cursor.accept("COLLATE"):
            options = replace(options, collation=cursor.word_or_string())
        collation = options.apply(self.draft.table).collation
        for column in list(self.draft.columns):
            if column.type.collation is not None and column.type.kind.value != "json":
                changed = replace(column, type=replace(column.type, collation=collation))
                self._check_change(column, changed)
                self.draft.columns[self.draft.columns.index(column)] = changed
        self.options = replace(self.options, charset=options.charset, collation=options.collation)
