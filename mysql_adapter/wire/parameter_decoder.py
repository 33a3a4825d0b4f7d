"""Parameters of COM_STMT_EXECUTE of plain types, read by a function that is made once for their types."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

from mysql_mimic.types import ColumnType

from dataflow.values.types import Value
from mysql_adapter.wire.parameters import INTEGERS, TEXTS, WireType

BIGINT_MAX = (1 << 63) - 1

Parameters = tuple[Value, ...]
Decode = Callable[[bytes, int], Parameters | None]
"""(packet, where its values begin) to the values, None for unusual ones."""

_LETTERS = {1: "b", 2: "h", 4: "i", 8: "q"}


@lru_cache(maxsize=1000)
def decoder_of(wire_types: tuple[WireType, ...], codec: str) -> tuple[Decode, tuple[str, ...]] | None:
    """How values of these types are read, and the codes of their types; None if one is unusual."""
    letters: list[str] = []
    for number, unsigned in wire_types:
        if number in INTEGERS:
            letter = _LETTERS[INTEGERS[ColumnType(number)][0]]
            letters.append(letter.upper() if unsigned else letter)
        elif number == ColumnType.DOUBLE:
            letters.append("d")
        elif number in TEXTS:
            letters.append("s")
        else:
            return None
    codes = tuple(["s8" if each == "s" else "f" if each == "d" else "i" for each in letters])
    if "s" not in letters and "Q" not in letters:
        return struct.Struct("<" + "".join(letters)).unpack_from, codes
    return _decoder(letters, codec), codes


def _decoder(letters: list[str], codec: str) -> Decode:
    structs = [None if letter == "s" else struct.Struct(f"<{letter}") for letter in letters]

    def decode(data: bytes, start: int) -> Parameters | None:
        values: list[int | float | str] = []
        for each in structs:
            if each is None:
                length = data[start]
                stop = start + 1 + length
                if length > 250 or stop > len(data):
                    return None
                values.append(data[start + 1 : stop].decode(codec))
                start = stop
            else:
                value = each.unpack_from(data, start)[0]
                if value > BIGINT_MAX:
                    return None
                values.append(value)
                start += each.size
        return tuple(values)

    return decode
