"""The pages of docs/guides, run as a reader would: files are written where the page says, commands executed in order.

A block with a title is a file. A block of `sh` is a list of commands; lines that install with pip are left out, since the packages are there already. A block of
`text` is what the commands before it must have printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS_TIMEOUT_S = 300
PORT = "3307"


@dataclass(slots=True)
class Reader:
    """`folder` is where the reader works; `path` is searched for programs before the system's."""

    folder: Path
    port: int
    path: list[Path]

    def follow(self, guide: str) -> list[str]:
        """Do all that the page says; how often it was right about what is printed."""
        printed, confirmed = "", []
        blocks = BLOCK.findall((GUIDES / f"{guide}.md").read_text())
        # A reader looks for the files that a command needs, wherever the page has them.
        for kind, title, text in blocks:
            if title and kind != "python":
                self._write(title, text)
        for kind, title, text in blocks:
            if title:
                self._write(title, text)
            elif kind == "sh":
                printed = self._run("\n".join(line for line in text.splitlines() if not line.startswith("pip install")))
            elif kind == "text":
                assert text in printed, f"{guide}: printed was\n{printed}\nand not\n{text}"
                confirmed.append(text)
        return confirmed

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(PORT, str(self.port)))

    def _run(self, commands: str) -> str:
        places = os.pathsep.join([*map(str, self.path), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = os.environ | {"PATH": places, "MILLRACE_MYSQL_PORT": str(self.port), "NO_COLOR": "1", "PYTHONSAFEPATH": ""}
        done = subprocess.run(
            ["sh", "-e", "-c", commands], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=COMMANDS_TIMEOUT_S
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout
