"""A hook of mkdocs: the search of the site works when its pages are opened as files, and loads nothing from elsewhere.

A browser starts no web worker for a page that is a file. Material's plugin `offline` loads a stand-in for it, `iframe-worker`, from the web; it is
in this folder instead.
"""

from __future__ import annotations

from typing import Any

from mkdocs.utils import get_relative_url

ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
HERE = "scripts/iframe-worker.js"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    assert ELSEWHERE in output
    return output.replace(ELSEWHERE, get_relative_url(HERE, page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    return output_content.replace(ELSEWHERE, f"/{HERE}")
