"""Rows for the TPC-H tables, and random changes of them, as SQL text; the same for the same `Random`.

Values are drawn from few, those that the queries ask for often among them, so that a few
hundred orders give every query something to find. Keys are handed out here, so that a
change meets a row that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("BRAZIL", 1), ("CANADA", 1), ("PERU", 1), ("FRANCE", 3), ("GERMANY", 3), ("RUSSIA", 3),
    ("INDIA", 2), ("CHINA", 2), ("SAUDI ARABIA", 4), ("EGYPT", 4), ("KENYA", 0),
)  # fmt: skip
_SEGMENTS = ("BUILDING", "AUTOMOBILE", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("MAIL", "SHIP", "AIR", "AIR REG", "TRUCK")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE")
_COLORS = ("forest", "green", "almond", "lemon")
_TYPES = ("ECONOMY ANODIZED STEEL", "STANDARD BRUSHED BRASS", "PROMO PLATED TIN", "MEDIUM POLISHED BRASS", "SMALL BURNISHED BRASS")
_BRANDS = (("Brand#12", "SM CASE"), ("Brand#23", "MED BOX"), ("Brand#34", "LG BOX"), ("Brand#45", "MED BAG"))
_SIZES = (1, 3, 9, 14, 15, 15, 15, 23, 45)
_CODES = (13, 31, 23, 29, 10, 33)
_COMMENTS = ("quick", "special packages requests", "Customer said Complaints", "furious")


class Rows:
    """A small company. `initial` gives its first rows; `change` changes some of them."""

    def __init__(self, random: Random, parts: int = 40, suppliers: int = 22, customers: int = 30, orders: int = 300) -> None:
        self._random = random
        self._parts, self._suppliers, self._customers, self._orders = parts, suppliers, customers, orders
        self._order = orders

    def initial(self) -> Iterator[str]:
        for number, name in enumerate(REGIONS):
            yield f"INSERT INTO region VALUES ({number}, '{name}', NULL)"
        for number, (name, region) in enumerate(NATIONS):
            yield f"INSERT INTO nation VALUES ({number}, '{name}', {region}, NULL)"
        for number in range(1, self._suppliers + 1):
            yield self._supplier(number)
        for number in range(1, self._parts + 1):
            yield self._part(number)
            for supplier in self._offering(number):
                yield self._offer(number, supplier)
        for number in range(1, self._customers + 1):
            yield self._customer(number)
        for number in range(1, self._orders + 1):
            yield from self._ordered(number)

    def change(self) -> Iterator[str]:
        """One change: some rows come, change or go."""
        random = self._random
        order, line = random.randint(1, self._order), random.randint(1, 7)
        key = f"l_orderkey = {order} AND l_linenumber = {line}"
        match random.randrange(16):
            case 0 | 1 | 2:
                self._order += 1
                yield from self._ordered(self._order)
            case 3 | 4:
                yield f"DELETE FROM lineitem WHERE l_orderkey = {order}"
                yield f"DELETE FROM orders WHERE o_orderkey = {order}"
            case 5:
                yield f"DELETE FROM lineitem WHERE {key}"
            case 6 | 7:
                yield f"UPDATE lineitem SET l_quantity = {random.randint(1, 50)}, l_discount = 0.0{random.randint(0, 9)} WHERE {key}"
            case 8:
                yield f"UPDATE lineitem SET l_receiptdate = l_commitdate + INTERVAL {random.randint(-9, 9)} DAY WHERE l_orderkey = {order}"
            case 9:
                yield f"UPDATE lineitem SET l_suppkey = {random.randint(1, self._suppliers)}, l_shipdate = '{self._date()}' WHERE {key}"
            case 10:
                yield f"UPDATE orders SET o_orderdate = '{self._date()}', o_comment = '{random.choice(_COMMENTS)}' WHERE o_orderkey = {order}"
            case 11:
                yield f"UPDATE orders SET o_custkey = {random.randint(1, self._customers)}, o_orderstatus = 'F' WHERE o_orderkey = {order}"
            case 12:
                number = random.randint(1, self._customers)
                yield f"DELETE FROM customer WHERE c_custkey = {number}"
                if random.random() < 0.7:
                    yield self._customer(number)
            case 13:
                number = random.randint(1, self._suppliers)
                yield f"DELETE FROM supplier WHERE s_suppkey = {number}"
                if random.random() < 0.8:
                    yield self._supplier(number)
            case 14:
                number = random.randint(1, self._parts)
                yield f"UPDATE part SET p_size = {random.choice(_SIZES)}, p_type = '{random.choice(_TYPES)}' WHERE p_partkey = {number}"
            case _:
                number = random.randint(1, self._parts)
                cost, quantity = self._money(1, 99), random.randint(1, 99)
                yield f"UPDATE partsupp SET ps_supplycost = {cost}, ps_availqty = {quantity} WHERE ps_partkey = {number}"

    def _money(self, low: int, high: int) -> str:
        return f"{self._random.randint(low, high)}.{self._random.randint(0, 99):02}"

    def _date(self) -> date:
        return date(1993, 1, 1) + timedelta(days=self._random.randrange(4 * 365))

    def _supplier(self, number: int) -> str:
        random = self._random
        return (
            f"INSERT INTO supplier VALUES ({number}, 'Supplier#{number:09}', 'street {number}', {number % len(NATIONS)},"
            f" '{random.choice(_CODES)}-000-000', {self._money(-99, 999)}, '{random.choice(_COMMENTS)}')"
        )

    def _part(self, number: int) -> str:
        random = self._random
        name = " ".join(random.sample(_COLORS, 2))
        brand, container = random.choice(_BRANDS)
        return (
            f"INSERT INTO part VALUES ({number}, '{name}', 'Manufacturer#{random.randint(1, 3)}', '{brand}',"
            f" '{random.choice(_TYPES)}', {random.choice(_SIZES)}, '{container}', {self._money(900, 999)}, '')"
        )

    def _offering(self, part: int) -> list[int]:
        return [(part + step) % self._suppliers + 1 for step in range(4)]

    def _offer(self, part: int, supplier: int) -> str:
        return f"INSERT INTO partsupp VALUES ({part}, {supplier}, {self._random.randint(1, 999)}, {self._money(1, 99)}, '')"

    def _customer(self, number: int) -> str:
        random = self._random
        return (
            f"INSERT INTO customer VALUES ({number}, 'Customer#{number:09}', 'road {number}', {random.randrange(len(NATIONS))},"
            f" '{random.choice(_CODES)}-111-111', {self._money(-99, 999)}, '{random.choice(_SEGMENTS)}', '{random.choice(_COMMENTS)}')"
        )

    def _ordered(self, number: int) -> Iterator[str]:
        """An order and its lines; a few are large."""
        random = self._random
        day = self._date()
        customer = random.randint(1, max(1, self._customers * 2 // 3))  # the others never order
        yield (
            f"INSERT INTO orders VALUES ({number}, {customer}, '{random.choice('FFO')}', {self._money(1000, 99999)}, '{day}',"
            f" '{random.choice(_PRIORITIES)}', 'Clerk', 0, '{random.choice(_COMMENTS)}')"
        )
        large = random.random() < 0.1
        lines = []
        for line in range(1, (7 if large else random.randint(1, 5)) + 1):
            shipped = day + timedelta(days=random.randint(1, 60))
            agreed = day + timedelta(days=random.randint(20, 60))
            received = shipped + timedelta(days=random.randint(1, 30))
            quantity = random.randint(42, 50) if large else random.randint(1, 50)
            part = random.randint(1, self._parts)
            lines.append(
                f"({number}, {part}, {random.choice(self._offering(part))}, {line}, {quantity},"
                f" {self._money(900, 9999)}, 0.0{random.randint(0, 9)}, 0.0{random.randint(0, 8)}, '{random.choice('RAN')}',"
                f" '{random.choice('OF')}', '{shipped}', '{agreed}', '{received}', '{random.choice(_INSTRUCTIONS)}',"
                f" '{random.choice(_MODES)}', '')"
            )
        yield f"INSERT INTO lineitem VALUES {', '.join(lines)}"
