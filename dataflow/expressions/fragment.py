"""A piece of generated source and what is known about its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """Source of a Python expression. `atomic` ones are names and constants: cheap to repeat."""

    source: str
    nullable: bool = True
    atomic: bool = False
