"""Rules that every file of the repository follows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.repository import PACKAGES, ROOT, python_files, relative, text_files, tree_of

LINES_MAX = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|home/\w+|Users/\w+|work)/")
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{+[\w {}-]*,[\w {}-]*\}+)\+")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_no_file_is_too_long_to_read() -> None:
    long = {
        relative(path): lines for path in python_files(*PACKAGES) if (lines := count_lines(path)) > LINES_MAX
    }
    assert not long, f"split by idea: {long}"


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_every_module_says_what_it_is() -> None:
    modules = {path: path.read_text() for path in python_files(*PACKAGES, "tests")}
    mute = [
        relative(path) for path, text in modules.items() if text and not ast.get_docstring(tree_of(text))
    ]
    assert not mute


def test_modules_are_named_by_what_they_hold() -> None:
    vague = [relative(path) for path in python_files(*PACKAGES, "tests") if path.stem in VAGUE_NAMES]
    assert not vague


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    found = [
        f"{relative(path)}:{number}"
        for path in text_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE_PATH.search(line) and path != Path(__file__)
    ]
    assert not found


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches too little with it (gh-106052); an atomic group does the same."""
    possessive = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(tree_of(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile" and POSSESSIVE_GROUP.search(ast.unparse(node))
    ]
    assert not possessive


def test_no_test_sleeps() -> None:
    sleepers = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(tree_of(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep")
    ]
    assert not sleepers


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{relative(page)}: {target}"
        for page in text_files()
        if page.suffix == ".md"
        for target in LINK.findall(page.read_text())
        if "://" not in target and not target.startswith("mailto:") and not leads_somewhere(page, target)
    ]
    assert not broken, "\n".join(broken)


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = page if not name else (page.parent / name).resolve()
    if not path.exists():
        return False
    return not anchor or path.suffix != ".md" or anchor in anchors(path)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as repository hosts make them."""
    headings = re.findall(r"^#+\s+(.+?)\s*$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_who_uses_the_client_library_gets_its_types() -> None:
    packages = ("backend", "controller", "dataflow", "persistence")
    assert all((ROOT / name / "py.typed").exists() for name in packages)
    assert '"py.typed"' in (ROOT / "pyproject.toml").read_text(), "it is installed, too"
