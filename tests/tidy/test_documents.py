"""What documents say of the repository is there: the modules they name, and when each decision was taken."""

from __future__ import annotations

import re

from tests.tidy.repository import PACKAGES, ROOT, relative, text_files

DECISION = re.compile(r"# (\d{4}): [A-Z].+\n\n\*(Accepted|Superseded by \[\d{4}\]\([\w.-]+\)), \d{4}-\d\d-\d\d\.\*\n")
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
