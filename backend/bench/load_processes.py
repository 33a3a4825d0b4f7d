"""Processes that put load on a server: each is told what to do by lines of JSON, and answers each by one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

LoadProcess = subprocess.Popen[str]


def tell(process: LoadProcess, what: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(what) + "\n")
    process.stdin.flush()


def answer_of(process: LoadProcess) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a load process has failed; its message is above")
    found: dict[str, Any] = json.loads(line)
    return found


def end(processes: Sequence[LoadProcess]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    for process in processes:
        process.wait()
