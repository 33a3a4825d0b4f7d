"""The command says of itself what a reader needs to use it."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from backend.cli import main

COMMANDS = sorted(main.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_explained(name: str) -> None:
    command = main.commands[name]
    assert command.help and command.get_short_help_str(60).endswith((".", "Parquet.")), name
    assert not [each.name for each in command.params if isinstance(each, click.Option) and not each.help]
    shown = CliRunner().invoke(main, [name, "--help"])
    assert shown.exit_code == 0 and "Usage:" in shown.output


def test_the_help_of_serve_reads_like_a_manual() -> None:
    shown = CliRunner().invoke(main, ["serve", "--help"]).output
    for part in ("Examples:", "Files in the data directory:", "Environment:", "Exit status:", "MILLRACE_MYSQL_PORT"):
        assert part in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_of_completion_is_printed(shell: str) -> None:
    shown = CliRunner().invoke(main, ["completion", shell])
    assert shown.exit_code == 0 and "_MILLRACE_COMPLETE" in shown.output


def test_options_are_completed() -> None:
    asked = {"_MILLRACE_COMPLETE": "bash_complete", "COMP_WORDS": "millrace serve --mys", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", "from backend.cli import main; main(prog_name='millrace')"]
    found = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["plain,--mysql-port"]
