"""CRC-32C as LevelDB stores it.

Python has none. It is needed only to say where a file is damaged that LevelDB has refused, so it may take a moment:
about a second for a log of 32 MB. The checksum of two byte strings in a row is that of the first, moved on by the
length of the second, XOR that of the second; so neighbours are merged pairwise, all pairs at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Checksums = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_SHORT_BYTES = 200
"""A loop over so few is faster."""


def _bytes() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ _POLYNOMIAL if value & 1 else value >> 1
        table.append(value)
    return table


_LIST = _bytes()
_TABLE: Checksums = np.array(_LIST, dtype=np.uint32)
_moves: list[Checksums] = []
"""By powers of two: what each byte of a checksum, at each of its four places, becomes when so many bytes follow."""


def masked_checksum(data: bytes) -> int:
    """As it is stored."""
    found = checksum(data)
    return ((found >> 15 | found << 17) + _MASK_DELTA) & 0xFFFF_FFFF


def checksum(data: bytes) -> int:
    size = len(data)
    if size < _SHORT_BYTES:
        register = 0xFFFF_FFFF
        for byte in data:
            register = register >> 8 ^ _LIST[(register ^ byte) & 0xFF]
        return register ^ 0xFFFF_FFFF
    powers = (size - 1).bit_length()
    padded = np.zeros(1 << powers, dtype=np.uint8)  # zeros in front change nothing
    padded[-size:] = np.frombuffer(data, dtype=np.uint8)
    merged: Any = _TABLE[padded]
    for power in range(powers):
        merged = _moved(merged[0::2], power) ^ merged[1::2]
    begin: Any = np.array([0xFFFF_FFFF], dtype=np.uint32)
    for power in range(size.bit_length()):
        if size >> power & 1:
            begin = _moved(begin, power)
    return int(merged[0] ^ begin[0]) ^ 0xFFFF_FFFF


def _moved(checksums: Any, power: int) -> Any:
    """What they become when 2 ** power zero bytes follow."""
    while len(_moves) <= power:
        values = np.arange(256, dtype=np.uint32)
        places = np.stack([values << np.uint32(8 * place) for place in range(4)])
        half = len(_moves) - 1
        step = places >> np.uint32(8) ^ _TABLE[places & 0xFF] if not _moves else _moved(_moved(places, half), half)
        _moves.append(step)
    table = _moves[power]
    moved = table[0][checksums & 0xFF]
    for place in (1, 2, 3):
        moved = moved ^ table[place][checksums >> np.uint32(8 * place) & 0xFF]
    return moved
