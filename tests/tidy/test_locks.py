"""The lock files hold an exact version of everything that pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tidy.repository import ROOT

PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = {
    "requirements.lock": PROJECT["dependencies"],
    "requirements-test.lock": PROJECT["optional-dependencies"]["test"],
    "requirements-java.lock": PROJECT["optional-dependencies"]["java"],
}


def pins(lock: str) -> dict[str, Version]:
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.startswith("#")]
    found = [PIN.fullmatch(line) for line in lines]
    assert all(found), f"{lock} holds something other than name==version"
    return {canonicalize_name(match[1]): Version(match[2]) for match in found if match}


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_pins_what_the_project_asks_for(lock: str) -> None:
    pinned = pins(lock)
    for text in WANTED[lock]:
        wanted = Requirement(text)
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, text


def test_no_package_is_pinned_twice() -> None:
    names = [name for lock in WANTED for name in pins(lock)]
    assert len(names) == len(set(names))
