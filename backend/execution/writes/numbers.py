"""Numbers handed out by the store's counters: AUTO_INCREMENT values and hidden row ids.

Row ids are taken in blocks and handed out from memory: nobody sees them, so gaps do no
harm. AUTO_INCREMENT values are reserved by statement, as InnoDB reserves them: as many as the
statement has rows at the first one needed, and twice as many each time these do not suffice.
"""

from __future__ import annotations

from backend.clustering.store import Store
from backend.execution.evaluation.access import AccessPath, Bound
from backend.execution.evaluation.reading import find_bound, row_decoder
from backend.execution.transaction import Transaction
from dataflow.schema import Table
from dataflow.values.types import INTEGER_BYTES, SqlType, Value
from persistence.counters import NUMBER_MAX
from persistence.layout import auto_increment_counter, row_id_counter

ROW_ID_BLOCK = 10_000
RESERVATION_MAX = 1 << 16
TRIES_MAX = 10


class Numbers:
    """What one process has taken from the counters and not yet used."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._row_ids: dict[int, tuple[int, int]] = {}
        self._raised: dict[tuple[int, int], int] = {}
        """By table and its version: ALTER TABLE may lower the counter."""

    async def row_ids(self, table_id: int, count: int) -> range:
        """`count` numbers that no other row of the table has."""
        first, end = self._row_ids.get(table_id, (0, 0))
        if end - first < count:
            block = max(count, ROW_ID_BLOCK)
            first = await self._store.allocate(row_id_counter(table_id), block)
            end = first + block
        self._row_ids[table_id] = (first + count, end)
        return range(first, first + count)

    async def reserve(self, table: Table, count: int, floor: int) -> int:
        """The first of `count` consecutive AUTO_INCREMENT values from `floor` up."""
        floor = min(max(floor, table.auto_increment_start), NUMBER_MAX)
        first = await self._store.allocate(auto_increment_counter(table.id), count, floor)
        self._raised[table.id, table.version] = first + count
        return first

    async def next_auto_increment(self, table: Table) -> int:
        """The value that would be handed out next."""
        return max(await self._store.allocate(auto_increment_counter(table.id), 0), table.auto_increment_start)

    def is_above(self, table: Table, value: int) -> bool:
        """Whether no value up to this one will be handed out, as far as is known."""
        return value < max(self._raised.get((table.id, table.version), 1), table.auto_increment_start)

    async def raise_above(self, table: Table, value: int) -> None:
        """An explicit value was stored: hand out only larger ones from now on."""
        if not self.is_above(table, value):
            floor = min(value + 1, NUMBER_MAX)
            await self._store.allocate(auto_increment_counter(table.id), 0, floor)
            self._raised[table.id, table.version] = floor


def number_end(type: SqlType) -> int:
    """The first integer that an AUTO_INCREMENT column of the type cannot have, as far as numbers are handed out; 0 if it has no integers."""
    width = INTEGER_BYTES.get(type.kind)
    return 0 if width is None else min(1 << (8 * width - (0 if type.unsigned else 1)), NUMBER_MAX)


def whole(value: Value) -> int:
    """What a stored value counts for: an AUTO_INCREMENT column may be FLOAT or DOUBLE."""
    assert value is None or isinstance(value, int | float)
    return min(round(value or 0), NUMBER_MAX)


async def lower_counter(store: Store, table: Table) -> None:
    """ALTER TABLE … AUTO_INCREMENT = n: the next number is n, or the first one above all that are stored."""
    place = next((place for place, column in enumerate(table.columns) if column.auto_increment), None)
    if place is None:
        return
    counter = auto_increment_counter(table.id)
    for _ in range(TRIES_MAX):
        expected = await store.allocate(counter, 0)
        wanted = max(table.auto_increment_start, await _largest(store, table, place) + 1)
        if wanted >= expected:
            return
        if await store.lower(counter, expected, wanted) == wanted:
            # for who has stored a number that was handed out before
            await store.allocate(counter, 0, min(await _largest(store, table, place) + 1, NUMBER_MAX))
            return


async def _largest(store: Store, table: Table, place: int) -> int:
    decode, largest = row_decoder(table), 0
    first = table.primary_key.parts[0]
    is_key = first.column_id == table.columns[place].id and not first.descending
    chunks = find_bound(Transaction(store), table, Bound(AccessPath(table.primary_key), [()], []), reverse=is_key)
    async for chunk in chunks:
        largest = max(largest, *[whole(decode(value)[place]) for _, _, value in chunk], 0)
        if is_key:
            break
    await chunks.aclose()  # type: ignore[attr-defined]
    return largest


class AutoIncrement:
    """One INSERT's values: `offset` and whole steps from there. A second run of the statement gets the same ones again."""

    def __init__(self, numbers: Numbers, table: Table, row_count: int, step: int = 1, offset: int = 1) -> None:
        self.step = step
        self._offset = offset
        self._numbers = numbers
        self._table = table
        self._row_count = row_count
        self._reservations: list[tuple[int, int]] = []
        self.restart()

    def restart(self) -> None:
        self._used = 0
        self._end = 0
        self._largest_explicit = 0
        self.position = 0
        """The number that the next row gets; 0 before the first reservation."""

    @property
    def is_used_up(self) -> bool:
        return self.position >= self._end

    async def reserve(self) -> None:
        if self._used == len(self._reservations):
            doubled = min(1 << self._used, RESERVATION_MAX)
            count = self._row_count if self._used == 0 and self._row_count else doubled
            floor = max(self.position, self._largest_explicit + 1)
            if self.step > 1:
                floor = self._next(max(floor, await self._numbers.next_auto_increment(self._table)))
            first = await self._numbers.reserve(self._table, count * self.step, floor)
            self._reservations.append((self._next(first), first + count * self.step))
        self.position, self._end = self._reservations[self._used]
        self._used += 1

    def take(self) -> int:
        assert not self.is_used_up
        self.position += self.step
        return self.position - self.step

    def _next(self, number: int) -> int:
        """The first of the values from a number on."""
        return number + (self._offset - number) % self.step

    def note_explicit(self, value: int) -> None:
        self._largest_explicit = max(self._largest_explicit, value)
        if self.position and value >= self.position:
            self.position = self._next(value + 1)
