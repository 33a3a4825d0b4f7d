"""What documents say of the repository is there: the modules they name, and when each decision was taken."""

from __future__ import annotations

import ast
import re

from tests.tidy.repository import PACKAGES, ROOT, relative, text_files, tree_of

DECISION = re.compile(r"# (\d{4}): [A-Z].+\n\n\*(Accepted|Superseded by \[\d{4}\]\([\w.-]+\)), \d{4}-\d\d-\d\d\.\*\n")
NAMED = re.compile(r"((?:`\w+(?:\.\w+)?`(?:, | and )?)+) in\s+`([\w/]+\.py)`")
"""`Class.method` in `path/module.py`"""
CODE = re.compile(rf"`((?:{'|'.join((*PACKAGES, 'tests', 'docs'))})/[\w./]+?)/?`")


def test_decisions_have_a_number_a_status_and_a_date() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    heads = {page.name: DECISION.match(page.read_text()) for page in pages}
    assert not [name for name, head in heads.items() if head is None or head[1] != name[:4]]


def test_modules_that_documents_name_are_there() -> None:
    missing = [
        f"{relative(page)}: {name}"
        for page in text_files()
        if page.suffix == ".md" and page.name != "CHANGELOG.md"
        for name in CODE.findall(page.read_text())
        if not (ROOT / name).exists()
    ]
    assert not missing, "\n".join(missing)


def test_classes_and_functions_that_documents_name_are_there() -> None:
    missing = [
        f"{relative(page)}: {name} in {path}"
        for page in text_files()
        if page.suffix == ".md" and page.name != "CHANGELOG.md"
        for names, path in NAMED.findall(page.read_text())
        if (ROOT / path).exists()
        for name in re.findall(r"[\w.]+", names.replace(" and ", " "))
        if not _defines(tree_of((ROOT / path).read_text()), name)
    ]
    assert not missing, "\n".join(missing)


def _defines(tree: ast.Module, name: str) -> bool:
    scope: list[ast.stmt] = tree.body
    for part in name.split("."):
        targets = [each for each in scope if isinstance(each, ast.Assign)]
        if any(isinstance(to, ast.Name) and to.id == part for each in targets for to in each.targets):
            return True
        found = next((each for each in scope if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and each.name == part), None)
        if found is None:
            return False
        scope = found.body
    return True
