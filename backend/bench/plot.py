"""Figures as files. matplotlib is one of the tests' requirements, not of those for serving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PANEL_INCHES = (5.0, 3.8)


def figure(panels: int) -> tuple[Any, list[Any]]:
    """A figure with so many panels, two in a row, and their axes."""
    from matplotlib.figure import Figure

    columns = min(panels, 2)
    rows = -(-panels // columns)
    drawn = Figure(figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows), layout="constrained")
    return drawn, list(drawn.subplots(rows, columns, squeeze=False).flat)


def save(drawn: Any, path: Path) -> None:
    """As path.png and path.svg."""
    for kind in ("png", "svg"):
        drawn.savefig(path.with_suffix(f".{kind}"), dpi=150)
