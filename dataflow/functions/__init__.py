"""The operators and functions of MySQL, one module per family; `call` builds typed calls.

Importing this package imports all its modules, which register what they define.
"""

from __future__ import annotations

import importlib
import pkgutil

from dataflow.functions.registry import call, is_deterministic, is_function, is_volatile, lookup

__all__ = ["call", "is_deterministic", "is_function", "is_volatile", "lookup"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
