"""Foreign keys enforced while a statement runs: parents looked for, children followed.

Checks are made row by row, as InnoDB makes them: an earlier row of the same statement counts,
a later one does not. What follows from ON DELETE and ON UPDATE is written by the same
transaction and followed further, level by level. See `references` for why a commit is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backend.clustering.store import ABSENT, ANY, PRESENT, Address, Stored
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import READ_AT_ONCE, Found, find_bound, row_address, row_decoder
from backend.execution.execution import Execution
from backend.execution.pace import breathe, parts
from backend.execution.transaction import OWN
from backend.execution.writes.columns import WrittenColumns
from backend.execution.writes.duplicates import duplicate_entry
from backend.execution.writes.references import Reference, References, Values
from backend.execution.writes.writing import RowWriter
from controller.sql.locking import EXCLUSIVE
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table
from dataflow.values.types import Row

LOOKUPS_MAX = 200
VIOLATIONS = frozenset({Condition.NO_REFERENCED_ROW, Condition.ROW_IS_REFERENCED})
"""What IGNORE turns into warnings."""

Child = tuple[Found, Row]
Change = tuple[Found, Row, Row]
"""(where it was found, the row, the row in its place)"""
Children = dict[tuple[int, bytes], list[Child]]
"""By the foreign key's id() and the key pointed at."""


class Enforcement:
    """The foreign keys of one run of a statement.

    With `assume_present` nothing is read to find parents: the commit finds out.
    """

    def __init__(self, references: References, execution: Execution) -> None:
        self.assume_present = False
        self._references = references
        self._execution = execution
        self._transaction = execution.transaction
        self._store = execution.transaction.store
        self._known: dict[Address, Stored | None] = {}

    # Children look for their parents

    async def prefetch_parents(self, table: Table, rows: Iterable[Row]) -> None:
        """Learn with one read which of the parents there are."""
        wanted: dict[Address, None] = {}
        rows = list(rows)
        for reference in self._references.of(table):
            if reference.parent_index is not None and reference.names_one_row and not self._assumes(reference):
                keys = {reference.child_key(row) for part in parts(rows) for row in part}
                named = (reference.target(self._store, key) for part in parts(list(keys)) for key in part if key is not None)
                wanted.update(dict.fromkeys(named))
        addresses = [address for address in wanted if address not in self._known]
        for first in range(0, len(addresses), READ_AT_ONCE):
            some = addresses[first : first + READ_AT_ONCE]
            self._known.update(zip(some, await self._store.get(some)))
            breathe()

    async def added(self, table: Table, row: Row, old: Row | None = None, through: Reference | None = None) -> None:
        """The row was written (in place of `old`): 1452 if it points at nothing.

        `through` is the key that the change came by: what it points at will be there.
        """
        for reference in self._references.of(table):
            values = reference.child_values(row)
            if values is None or reference is through:
                continue
            if old is None or reference.child_values(old) != values:
                await self._point(reference, values)

    async def _point(self, reference: Reference, values: Values) -> None:
        parent, transaction = reference.parent, self._transaction
        if parent is None or reference.parent_index is None:
            raise reference.no_parent()
        transaction.use_table(parent.id, parent.version)
        key = reference.encoded(values)
        if key is None:
            raise reference.no_parent()
        if reference.names_one_row:
            await self._expect(reference, reference.target(self._store, key))
        else:
            await self._expect_one(reference, values, key)
        guard = reference.guard(self._store, key)
        if (transaction.pending(guard) or (ANY, None))[1] is None:
            transaction.put(guard, ANY, b"")

    def _assumes(self, reference: Reference) -> bool:
        """A row of the same table may be written later by the same statement, which would be too late."""
        return self.assume_present and reference.parent is not reference.child

    async def _expect(self, reference: Reference, target: Address) -> None:
        pending = self._transaction.pending(target)
        if pending is not None:
            if pending[1] is None:
                raise reference.no_parent()
            return
        if not self._assumes(reference):
            if target not in self._known:
                self._known[target] = (await self._store.get([target]))[0]
            if self._known[target] is None:
                raise reference.no_parent()
        self._transaction.check(target, PRESENT)

    async def _expect_one(self, reference: Reference, values: Values, key: bytes) -> None:
        """Several parents may have the key: one of them must stay as it is."""
        parent, index = reference.parent, reference.parent_index
        assert parent is not None and index is not None
        decode = row_decoder(parent)
        async for chunk in find_bound(self._transaction, parent, Bound(AccessPath(index), [values], [])):
            for row_key, version, value in chunk:
                if reference.parent_key(decode(value)) == key:
                    self._transaction.check(row_address(self._store, row_key), version)
                    return
        raise reference.no_parent()

    # Parents are followed by their children

    async def delete(self, table: Table, victims: Sequence[Child]) -> None:
        """Delete the rows, and do what ON DELETE says about those that point at them; 1451 if nothing."""
        references = self._references.to(table)
        children = await self._children(references, [row for _, row in victims])
        writer = RowWriter(self._transaction, table)
        deleted: dict[int, tuple[Table, dict[bytes, Child]]] = {}
        emptied: list[tuple[Reference, Child]] = []
        for victim in victims:
            breathe()
            current = self._as_pending(victim)
            if current is None:
                continue  # deleted meanwhile, on another way
            found, row = current
            for reference in references:
                for child in self._current(reference, children, reference.parent_key(row)):
                    match reference.key.on_delete:
                        case "CASCADE":
                            deleted.setdefault(reference.child.id, (reference.child, {}))[1][child[0][0]] = child
                        case "SET NULL":
                            emptied.append((reference, child))
                        case _:
                            raise reference.has_children()
            writer.delete(found, row)
        for child_table, rows in deleted.values():
            await self.delete(child_table, list(rows.values()))
        for reference, child in emptied:
            await self._assign(reference, child, (None,) * len(reference.child_positions), frozenset())

    async def changes(self, table: Table, old: Row, new: Row, chain: frozenset[int] = frozenset()) -> None:
        """A row is going to be replaced: do what ON UPDATE says about those that point at it; 1451 if nothing.

        `chain` are the tables that ON UPDATE has come through.
        """
        moved = [each for each in self._references.to(table) if each.parent_values(old) != each.parent_values(new)]
        if not moved:
            return
        children = await self._children(moved, [old])
        chain |= {table.id}
        for reference in moved:
            action = reference.key.on_update
            for child in self._current(reference, children, reference.parent_key(old)):
                if action not in ("CASCADE", "SET NULL") or reference.child.id in chain:
                    raise reference.has_children()
                nulls = (None,) * len(reference.child_positions)
                values = reference.parent_values(new) if action == "CASCADE" else nulls
                await self._assign(reference, child, values, chain)

    async def _assign(self, reference: Reference, child: Child, values: Values, chain: frozenset[int]) -> None:
        """Give a child other values to point with."""
        current = self._as_pending(child)
        if current is None:
            return  # deleted meanwhile, on another way
        (found, old), table = current, reference.child
        row = list(old)
        for position, value in zip(reference.child_positions, values):
            row[position] = value
        new = WrittenColumns(table).complete(row, self._execution)
        await self.changes(table, old, new, chain)
        duplicate = await RowWriter(self._transaction, table).update(found, old, new)
        if duplicate is not None:
            raise duplicate_entry(table, duplicate.index, new)
        await self.added(table, new, old, reference)

    async def _children(self, references: Sequence[Reference], rows: Sequence[Row]) -> Children:
        """The rows that point at any of `rows`, found after their guards were read."""
        wanted: list[tuple[Reference, dict[bytes, Values]]] = []
        for reference in references:
            keys = {reference.parent_key(row): reference.parent_values(row) for part in parts(rows) for row in part}
            wanted.append((reference, {key: values for key, values in keys.items() if key is not None}))
        guards = list({reference.guard(self._store, key): None for reference, named in wanted for key in named})
        found: Children = {}
        if not guards:
            return found
        # as of one epoch: children that are older than their guards would be missed
        epoch = await self._store.hold_epoch()
        try:
            for guard, stored in zip(guards, await self._store.get(guards, epoch)):
                breathe()
                self._transaction.check(guard, ABSENT if stored is None else stored[0])
                if stored is not None or self._transaction.pending(guard) is not None:
                    self._transaction.put(guard, ANY, None)
            for reference, named in wanted:
                self._transaction.use_table(reference.child.id, reference.child.version)
                await self._find(reference, named, found, epoch)
        finally:
            self._store.release_epoch(epoch)
        return found

    async def _find(self, reference: Reference, keys: dict[bytes, Values], found: Children, epoch: int) -> None:
        child, index = reference.child, reference.child_index
        decode = row_decoder(child)
        alternatives = list(keys.values())
        if index is None:  # it is being built
            bounds = [Bound(AccessPath(child.primary_key), [()], [])] if alternatives else []
        else:
            bounds = [
                Bound(AccessPath(index), alternatives[first : first + LOOKUPS_MAX], [])
                for first in range(0, len(alternatives), LOOKUPS_MAX)
            ]
        seen: set[bytes] = set()
        children: list[tuple[Address, int]] = []
        for bound in bounds:
            async for chunk in find_bound(self._transaction, child, bound, epoch=epoch):
                for each in chunk:
                    breathe()
                    if each[0] in seen:
                        continue
                    row = decode(each[2])
                    key = reference.child_key(row)
                    if key in keys:
                        seen.add(each[0])
                        children.append((row_address(self._store, each[0]), each[1]))
                        found.setdefault((id(reference), key), []).append((each, row))
        if self._transaction.locking:
            await self._transaction.lock_found(children, EXCLUSIVE)

    def _current(self, reference: Reference, children: Children, key: bytes | None) -> list[Child]:
        """The children of a key as the transaction has left them up to now."""
        if key is None:
            return []
        now = [self._as_pending(child) for child in children.get((id(reference), key), ())]
        return [child for child in now if child is not None and reference.child_key(child[1]) == key]

    def _as_pending(self, child: Child) -> Child | None:
        key = child[0][0]
        pending = self._transaction.pending(row_address(self._store, key))
        if pending is None:
            return child
        if pending[1] is None:
            return None
        table_id = int.from_bytes(key[1:5], "big")
        return (key, OWN, pending[1]), self._decode(table_id, pending[1])

    def _decode(self, table_id: int, value: bytes) -> Row:
        return row_decoder(self._references.table(table_id))(value)


def is_violation(error: InvalidStatement) -> bool:
    return error.condition in VIOLATIONS
