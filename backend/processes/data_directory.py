"""The data directory is its owner's alone: nobody else reads what is in it, whatever it was like before.

Processes make their files under a mask that leaves others nothing (`close_umask`, inherited by all that they start). What is there already
is repaired at the start. What belongs to somebody else can't be: they could open it again.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NotPrivate(Exception):
    """Why others could read the data directory, in one line for the user."""


def close_umask() -> None:
    os.umask(_OTHERS)


def make_private(path: Path) -> None:
    """Leave others nothing of `path` and all that is below. Raises NotPrivate, and OSError where that fails.

    A folder first, then what is in it: meanwhile nobody can put something else in its place.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return
    if found.st_uid != os.geteuid():
        raise NotPrivate(
            f"{path} belongs to {_name(found.st_uid)}, who could read it; "
            f"give it to {_name(os.geteuid())} (chown -R) or use another data directory"
        )
    if found.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    if stat.S_ISDIR(found.st_mode):
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            make_private(path / name)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
