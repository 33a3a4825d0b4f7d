"""Tables change under views: a narrowed node means the same over whatever else its tables have, and a view that goes on stays right."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.network.program_messages import AddView
from backend.views.view_host import ViewHost
from controller.catalog import encode_node, encode_table
from dataflow.commit.epoch_effects import PersistEpoch
from dataflow.expressions.source import key_function
from dataflow.plan.column_use import fits, narrowed, widened
from dataflow.plan.node import Base, Columns, Node
from dataflow.schema import Index, KeyPart, Table, TableColumn
from dataflow.values.types import INT, Row
from persistence.layout import TableWriter
from persistence.shard_store import ShardStore
from tests.property.dataflow_oracle import evaluate
from tests.property.dataflow_plans import BASES, nodes, rows, values, views

EXAMPLES = int(os.environ.get("MILLRACE_EXAMPLES", "40"))
QUIET = settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))


def table_of(base: Base) -> Table:
    columns = tuple([TableColumn(number + 1, f"c{number}", kind, nullable=number not in base.primary_key) for number, kind in enumerate(base.types)])
    key = Index(1, "PRIMARY", tuple([KeyPart(column + 1) for column in base.primary_key]), unique=True)
    indexes = (Index(2, "one", (KeyPart(2),)), Index(3, "two", (KeyPart(3), KeyPart(2))))
    ids = tuple([column.id for column in columns])
    return Table(base.table, "d", base.name, columns, key, indexes, formats=(ids,), next_column_id=len(ids) + 1, next_index_id=4)


TABLES = {number: table_of(base) for number, base in BASES.items()}


@st.composite
def changed(draw: st.DrawFn, table: Table) -> Table:
    """The table after ALTER TABLE or CREATE INDEX."""
    table = replace(table, version=table.version + 1)
    keyed = {part.column_id for part in table.primary_key.parts}
    match draw(st.sampled_from(["add", "add", "drop", "index", "build", "unindex", "rename"])):
        case "add":
            column = TableColumn(table.next_column_id, f"c{table.next_column_id}", INT, missing=draw(values(INT)))
            place = draw(st.integers(0, len(table.columns)))
            columns = (*table.columns[:place], column, *table.columns[place:])
            return replace(formatted(table, columns), next_column_id=column.id + 1)
        case "drop":
            gone = draw(st.sampled_from([column.id for column in table.columns]))
            if gone in keyed:
                return table
            left = tuple([index for index in table.indexes if gone not in {part.column_id for part in index.parts}])
            return formatted(replace(table, indexes=left), tuple([column for column in table.columns if column.id != gone]))
        case "index" | "build" as kind:
            parts = draw(st.lists(st.sampled_from([column.id for column in table.columns]), min_size=1, max_size=2, unique=True))
            index = Index(table.next_index_id, "new", tuple(map(KeyPart, parts)), building=kind == "build")
            return replace(table, indexes=(*table.indexes, index), next_index_id=index.id + 1)
        case "unindex" if table.indexes:
            return replace(table, indexes=tuple(each for each in table.indexes if each is not draw(st.sampled_from(table.indexes))))
        case _:
            return replace(table, columns=tuple([replace(column, name=column.name + "x") for column in table.columns]))


def formatted(table: Table, columns: tuple[TableColumn, ...]) -> Table:
    ids = tuple([column.id for column in columns])
    return replace(table, columns=columns, formats=table.formats if table.formats[-1] == ids else (*table.formats, ids))


def seen(table: Table, stored: Mapping[int, object]) -> Row:
    """A row by the ids of its columns, as a version of its table has it."""
    return tuple([stored.get(column.id, column.missing) for column in table.columns])


@QUIET
@given(st.data())
def test_a_narrowed_node_means_the_same_over_all_tables_that_it_fits(data: st.DataObject) -> None:
    node = data.draw(nodes())
    narrow = narrowed(node, TABLES)
    assert widened(narrow, TABLES) == node, "over the same tables it is the node that it was made from"
    tables = dict(TABLES)
    for _ in range(data.draw(st.integers(0, 4))):
        which = data.draw(st.sampled_from([1, 2, 3]))
        tables[which] = data.draw(changed(tables[which]))
    if not fits(narrow, tables):
        return
    found = {number: data.draw(st.lists(rows(base), max_size=4)) for number, base in BASES.items()}
    before = {number: Counter(each) for number, each in found.items()}
    stored = {number: [dict(zip([column.id for column in TABLES[number].columns], row)) for row in each] for number, each in found.items()}
    after = {number: Counter([seen(tables[number], row) for row in each]) for number, each in stored.items()}
    wide = widened(narrow, tables)
    assert wide.types == node.types and evaluate(wide, after) == evaluate(node, before)


class Run:
    """A worker's views over tables that change between epochs."""

    def __init__(self, folder: Path) -> None:
        self.store = ShardStore(folder, "os")
        self.host = ViewHost(self.store, 1 << 30)
        self.tables = dict(TABLES)
        self.stored: dict[int, dict[bytes, dict[int, object]]] = {number: {} for number in TABLES}
        """Rows by the ids of their columns."""
        self.views: dict[bytes, tuple[Node, Columns]] = {}
        """Narrowed nodes."""
        self.epoch = 1
        self.kept = 0

    @property
    def versions(self) -> dict[int, int]:
        return {number: table.version for number, table in self.tables.items()}

    def add(self, node: Node, key: Columns) -> None:
        """A view over the tables as they were first, if they still have what it uses."""
        narrow = narrowed(node, TABLES)
        if fits(narrow, self.tables):
            name = b"%d" % len(self.views)
            message = AddView(name, encode_node(narrow), key, [encode_table(table) for table in self.tables.values()])
            if self.host.add(message, self.versions):
                self.views[name] = narrow, key

    def write(self, table_id: int, row: Row, is_delete: bool, data: st.DataObject) -> None:
        table = self.tables[table_id]
        writer = TableWriter(table)
        given = {column.id: value for column, value in zip(TABLES[table_id].columns, row)}
        new = {column.id: given[column.id] if column.id in given else data.draw(values(column.type)) for column in table.columns}
        tuples = tuple(new.values())
        key = writer.row_key(tuples)
        old = self.stored[table_id].get(key)
        writes: dict[bytes, bytes | None] = {}
        if old is not None:
            writes |= {entry.key: None for entry in writer.entries(seen(table, old), key)}
        if is_delete:
            writes[key] = None
            self.stored[table_id].pop(key, None)
        else:
            writes |= {entry.key: entry.value for entry in writer.entries(tuples, key)}
            writes[key] = writer.encode(tuples)
            self.stored[table_id][key] = new
        self.persist(writes)

    def persist(self, writes: dict[bytes, bytes | None]) -> None:
        self.epoch += 1
        effect = PersistEpoch(self.epoch, writes, [], {}, None, True)
        changes = self.host.changes(effect)
        self.store.persist_epoch(effect)
        self.host.apply(changes)

    def change(self, table: Table) -> None:
        before = {name: hosted.view.arrangement for name, hosted in self.host.views.items()}
        old, self.tables[table.id] = self.tables[table.id], table
        self.host.tables_changed(self.versions, {table.id: table})
        for name, hosted in self.host.views.items():
            assert hosted.view.arrangement is before[name]
            self.kept += len(before[name].index)
        made = [index for index in table.indexes if index not in old.indexes]
        writer = TableWriter(replace(table, indexes=tuple(made)))
        entries = [entry for key, row in self.stored[table.id].items() for entry in writer.entries(seen(table, row), key)]
        self.persist({entry.key: entry.value for entry in entries})

    def check(self) -> None:
        rows = {number: Counter([seen(table, row) for row in self.stored[number].values()]) for number, table in self.tables.items()}
        for name, hosted in self.host.views.items():
            narrow, _ = self.views[name]
            assert fits(narrow, self.tables), "the view uses what is gone"
            wanted = evaluate(widened(narrow, self.tables), rows)
            arrangement = hosted.view.arrangement
            for key in arrangement.index:
                found = Counter(self.host.engine.rows(hosted.view, key) or ())
                assert found == Counter({row: count for row, count in wanted.items() if arrangement.key_of(row) == key}), narrow
        self.host.engine.validate()


@QUIET
@given(st.data())
def test_views_that_go_on_when_their_tables_change_stay_right(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        run = Run(Path(folder))
        try:
            _drive(run, data)
        finally:
            run.host.close()
            run.store.close()


def _drive(run: Run, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        view = data.draw(views())
        run.add(view.node, view.key)
    for action in data.draw(st.lists(st.sampled_from(["write", "write", "write", "read", "change", "add"]), max_size=12)):
        which = data.draw(st.sampled_from([1, 2, 3]))
        match action:
            case "write":
                run.write(which, data.draw(rows(BASES[which])), data.draw(st.integers(0, 3)) == 0, data)
            case "change":
                run.change(data.draw(changed(run.tables[which])))
            case "add":
                view = data.draw(views())
                run.add(view.node, view.key)
            case _:
                for name, hosted in list(run.host.views.items()):
                    key = [data.draw(values(hosted.view.node.types[column])) for column in hosted.view.key]
                    assert run.host.lookup(name, msgspec.msgpack.encode([key])) is not None
        run.check()


def test_filled_keys_stay_when_a_column_or_index_comes_that_the_view_does_not_use(tmp_path: Path) -> None:
    run = Run(tmp_path)
    base = BASES[1]
    run.add(base, (1,))
    key = key_function((1,), base.types)((0, 5, 0))
    run.host.lookup(b"0", msgspec.msgpack.encode([(5,)]))
    table = replace(TABLES[1], version=2, indexes=(*TABLES[1].indexes, Index(9, "c", (KeyPart(3),))))
    run.change(table)
    assert key in run.host.views[b"0"].view.arrangement.index
    run.change(replace(table, version=3, indexes=table.indexes[1:]))
    assert b"0" not in run.host.views, "rows are looked up in the index that is gone"
    run.host.close()
