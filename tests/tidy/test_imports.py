"""The picture of who may import whom stays true:

mysql_adapter → backend → { controller, persistence } → dataflow
apps → only what a user has: a MySQL driver, or the client library (millrace → backend)
"""

from __future__ import annotations

import sys

import pytest

from tests.tidy.repository import PACKAGES, imported_modules, python_files, relative

BELOW = {
    "dataflow": {"dataflow"},
    "persistence": {"persistence", "dataflow"},
    "controller": {"controller", "dataflow"},
    "backend": {"backend", "controller", "persistence", "dataflow"},
    "mysql_adapter": {"mysql_adapter", "backend", "controller", "persistence", "dataflow"},
    "millrace": {"backend", "dataflow"},
    "apps": {"apps", "millrace"},
}
OWNERS = {
    "plyvel": "persistence",
    "kazoo": "controller",
    "pyspark": "backend",
    "mysql_mimic": "mysql_adapter",
}
PURE_LIBRARIES = {"cryptography", "numpy", "pyarrow", "re2", "regex"}
"""Libraries that compute values from values; re2 and regex match patterns, cryptography has the ciphers of AES_ENCRYPT."""
CLOCKS = {("dataflow/values/regular_expressions/engine.py", "time")}
"""A pattern that backtracks is stopped by processor time: nothing else tells how long it would take."""
IMPURE = {
    "asyncio", "concurrent", "http", "multiprocessing", "os", "pathlib", "random", "secrets", "select", "selectors",
    "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib",
}  # fmt: skip
"""Sockets, disks, threads, clocks and chance: what the core must not know."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    wrong = [
        f"{relative(path)}:{line} imports {module}"
        for path in python_files(package)
        for line, module in imported_modules(path)
        if (top := module.split(".")[0]) in {*PACKAGES, "tests"} and top not in BELOW[package]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_has_one_owner(library: str) -> None:
    wrong = [
        f"{relative(path)}:{line} imports {module}"
        for path in python_files(*(package for package in PACKAGES if package != OWNERS[library]))
        for line, module in imported_modules(path)
        if module.split(".")[0] == library
    ]
    assert not wrong, "\n".join(wrong)


def test_dataflow_is_pure() -> None:
    allowed = (sys.stdlib_module_names - IMPURE) | PURE_LIBRARIES | {"dataflow"}
    wrong = [
        f"{relative(path)}:{line} imports {module}"
        for path in python_files("dataflow")
        for line, module in imported_modules(path)
        if module.split(".")[0] not in allowed and (relative(path), module) not in CLOCKS
    ]
    assert not wrong, "\n".join(wrong)
