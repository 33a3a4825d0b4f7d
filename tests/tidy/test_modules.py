"""Names that mean one thing, modules that something uses, imports without circles."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.repository import PACKAGES, ROOT, python_files, relative, tree_of

OWN_WORDS = ("apps/", "backend/client/")
"""Applications have words of their own, and the client library has those of its users."""
OF_EACH_BENCHMARK = frozenset({"Case", "Options"})
"""Each benchmark has its own of these."""
FOUND_BY_NAME = ("apps.", "backend.bench.", "dataflow.functions.")
"""Where modules are found by their names: run as commands, or all that a folder has."""
ONLY_TESTED = frozenset({"backend.execution.embedded"})
"""Modules that nothing but tests imports, as they are now. This list only gets shorter."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in python_files(*PACKAGES)}
TREES = {name: tree_of(path.read_text()) for name, path in MODULES.items()}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the project that are imported in a tree, whatever of them is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (each for each in inner if each in MODULES)
            if not all(each in MODULES for each in inner):
                yield node.module


def imported_at_once(tree: ast.Module) -> set[str]:
    """What is imported when the module is: not for types alone, and not inside of functions."""
    kept = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return set(imported(ast.Module(list[ast.stmt](kept), [])))


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module, tree in TREES.items():
        if not relative(MODULES[module]).startswith(OWN_WORDS):
            for node in tree.body:
                is_own = module.startswith("backend.bench.") and isinstance(node, ast.ClassDef) and node.name in OF_EACH_BENCHMARK
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not is_own:
                    places[node.name].append(module)
    assert not {name: modules for name, modules in places.items() if len(modules) > 1}


def test_every_module_is_used_by_more_than_tests() -> None:
    used = {each for module, tree in TREES.items() for each in imported(tree) if each != module}
    constants = [node.value for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    named = {each for each in constants if isinstance(each, str) and "." in each}
    unused = [
        module
        for module, path in MODULES.items()
        if path.name not in ("__init__.py", "__main__.py")
        and module not in used
        and not any(module in each for each in named)
        and not module.startswith(FOUND_BY_NAME)
    ]
    assert set(unused) == ONLY_TESTED


def test_modules_do_not_import_each_other_in_circles() -> None:
    graph = {module: imported_at_once(tree) for module, tree in TREES.items()}
    assert not circles(graph)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules of which each reaches all others (Tarjan)."""
    number: dict[str, int] = {}
    least: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = least[module] = len(number)
        path.append(module)
        for each in graph[module]:
            if each not in number:
                visit(each)
                least[module] = min(least[module], least[each])
            elif each in path:
                least[module] = min(least[module], number[each])
        if least[module] == number[module]:
            start = path.index(module)
            group, path[start:] = path[start:], []
            if len(group) > 1:
                found.append(group)

    for module in graph:
        if module not in number:
            visit(module)
    return found
