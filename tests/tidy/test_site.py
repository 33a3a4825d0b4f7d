"""The site is built without a warning: every page is in it, every link and anchor leads somewhere, nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.tidy.repository import ROOT

LOADED = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\"[^>]*>")


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # --quiet would hide warnings from --strict, too
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    listed = (tmp_path / "decisions.html").read_text()
    assert all(f"decisions/{path.stem}.html" in listed for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert not [(page.name, found) for page in pages for found in LOADED.findall(page.read_text()) if "canonical" not in found]
