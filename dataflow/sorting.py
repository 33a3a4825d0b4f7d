"""Sorting large lists in pieces.

One call of `sort` lets nothing else in the process happen until it returns, which for a
million rows is a second or two. Pieces that are merged by sorting them again, which takes
linear time, give others their turn in between; a short list is one piece.
"""

from __future__ import annotations

from typing import Any

PIECE = 1 << 14


def sort_in_pieces(entries: list[Any]) -> None:
    """Sort in place."""
    if len(entries) <= PIECE:
        entries.sort()
        return
    for start in range(0, len(entries), PIECE):
        entries[start : start + PIECE] = sorted(entries[start : start + PIECE])
    width = 2 * PIECE
    while width < 2 * len(entries):
        for start in range(0, len(entries), width):
            entries[start : start + width] = sorted(entries[start : start + width])
        width *= 2
