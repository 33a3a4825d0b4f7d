"""Completion in the shells themselves: who presses Tab gets the rest of an option."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from tests.clients.programs import install_packages

WAIT_S = 120.0
BEGIN = {
    "bash": (("bash", "--norc", "-i"), 'eval "$(millrace completion bash)"'),
    "zsh": (("zsh", "-f", "-i"), 'autoload -Uz compinit; compinit -u -D; eval "$(millrace completion zsh)"'),
    "fish": (("fish", "--no-config", "-i"), "millrace completion fish | source"),
}

pytestmark = pytest.mark.slow


class Terminal:
    """A program that believes to be at a terminal."""

    def __init__(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.execvpe(command[0], command, environment)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, wanted: str) -> None:
        shown, end = "", time.monotonic() + WAIT_S
        while wanted not in shown:
            assert time.monotonic() < end, shown
            if select.select([self._terminal], [], [], 1.0)[0]:
                shown += os.read(self._terminal, 1 << 16).decode(errors="replace")

    def close(self) -> None:
        os.close(self._terminal)  # which hangs up
        os.waitpid(self._process, 0)


@pytest.mark.parametrize("shell", BEGIN)
def test_the_tab_key_completes(shell: str, tmp_path: Path) -> None:
    install_packages((shell,))
    command, begin = BEGIN[shell]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = Terminal(command, os.environ | {"PATH": path, "TERM": "dumb", "HOME": str(tmp_path)})
    try:
        terminal.type(f"{begin}\necho be''gun\n")
        terminal.until("\nbegun")
        terminal.type("millrace serve --mys\t")
        terminal.until("--mysql-port")
    finally:
        terminal.close()
