"""What is in the repository, for the tests that check its own rules."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("apps", "backend", "controller", "dataflow", "millrace", "mysql_adapter", "persistence")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".lock", ".sql", ".yml", ".cfg", ".sh"}


def tree_of(text: str) -> ast.Module:
    """As `ast.parse`, which fails by chance if a collection runs other code meanwhile (python/cpython issue 106905)."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """(line, full module name) of every import in the file, wherever it stands."""
    for node in ast.walk(tree_of(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            assert node.module is not None
            yield node.lineno, node.module


def text_files() -> list[Path]:
    folders = [ROOT / name for name in (*PACKAGES, "docs", "tests", ".ci")]
    inside = [path for folder in folders for path in folder.rglob("*") if path.suffix in TEXT_SUFFIXES]
    top = [path for path in ROOT.iterdir() if path.suffix in TEXT_SUFFIXES or path.name == "Makefile"]
    return sorted(inside + top)
