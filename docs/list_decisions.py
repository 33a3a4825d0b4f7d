"""A hook of mkdocs: the page of decisions lists all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = "decisions.md"
MARK = "<!-- the list: docs/list_decisions.py -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri != PAGE:
        return markdown
    lines = ["| | |", "|---|---|"]
    for path in sorted((Path(__file__).parent / "decisions").glob("*.md")):
        number, _, title = path.read_text().partition("\n")[0].removeprefix("# ").partition(": ")
        lines.append(f"| {number} | [{title}](decisions/{path.name}) |")
    assert MARK in markdown
    return markdown.replace(MARK, "\n".join(lines))
