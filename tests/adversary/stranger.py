"""A program that plays the stranger: without any secret, on all ports of a cluster and as another user of the machine.

    python -m tests.adversary.stranger '{"seconds": 10, "doors": [["internal", "127.0.0.1", 4711], …], "files": ["/data", …]}'

It prints one JSON object: how often each attack was tried, and what should not have happened. Run by root it becomes `nobody` before
it does anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from tests.adversary.attacks import ATTACKS, Attempt

NOBODY = 65534
PAUSE_S = 0.05
AT_ONCE = 3
"""Attacks under way at each door."""
SILENT_MAX = 150
"""Connections that are open at a time and say nothing, of each door."""


class _Silent(asyncio.Protocol):
    """A connection on which nothing is said."""

    def __init__(self) -> None:
        self.is_closed = False
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exception: Exception | None) -> None:
        self.is_closed = True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Stranger:
    def __init__(self, order: dict[str, Any]) -> None:
        self._until = time.monotonic() + order["seconds"]
        self._doors: list[tuple[str, str, int]] = [(kind, host, port) for kind, host, port in order["doors"]]
        self._files: list[str] = order["files"]
        self._random = random.Random(order.get("seed", 1))
        self.tried: Counter[str] = Counter()
        self.findings: set[str] = set()

    async def run(self) -> None:
        self.look_at_files()
        attacks = [self._attack(*door) for door in self._doors for _ in range(AT_ONCE)]
        await asyncio.gather(*attacks, *(self._be_silent(*door) for door in self._doors))

    async def _attack(self, kind: str, host: str, port: int) -> None:
        """One attack after the other, each with what chance says."""
        while time.monotonic() < self._until:
            attack = self._random.choice(ATTACKS[kind])
            await self._try(f"{kind}: {attack.__name__}", attack, Attempt(host, port, self._random))
            await asyncio.sleep(PAUSE_S)

    async def _try(self, name: str, attack: Callable[[Attempt], Awaitable[str | None]], attempt: Attempt) -> None:
        self.tried[name] += 1
        try:
            found = await asyncio.wait_for(attack(attempt), 5)
        except (OSError, EOFError, TimeoutError):
            return  # turned away
        if found is not None:
            self.findings.add(f"{name}: {found}")

    async def _be_silent(self, kind: str, host: str, port: int) -> None:
        """Hold as many connections as one gets, and open others for those that were closed."""
        held: list[_Silent] = []
        try:
            while time.monotonic() < self._until:
                held = [each for each in held if not each.is_closed]
                while len(held) < SILENT_MAX:
                    connecting = asyncio.get_running_loop().create_connection(_Silent, host, port)
                    try:
                        held.append((await asyncio.wait_for(connecting, 2))[1])
                    except (OSError, TimeoutError):
                        break
                    self.tried[f"{kind}: silence"] += 1
                await asyncio.sleep(0.25)
        finally:
            for each in held:
                each.close()

    def look_at_files(self) -> None:
        """Read, list, change, replace: everything in some places, which may be patterns."""
        for place in [found for pattern in self._files for found in (glob.glob(pattern) or [pattern])]:
            self._look_at(place)

    def _look_at(self, path: str) -> None:
        self.tried["files"] += 1
        for flags, does in ((os.O_RDONLY, "read"), (os.O_WRONLY, "written")):
            with contextlib.suppress(OSError):
                os.close(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK))
                self.findings.add(f"{path} can be {does}")
        with contextlib.suppress(OSError):
            names = os.listdir(path)
            self.findings.add(f"{path} can be listed")
            for name in names:
                self._look_at(os.path.join(path, name))
        with contextlib.suppress(OSError):
            os.chmod(path, 0o777)
            self.findings.add(f"{path} can be opened to all")


def main() -> None:
    order = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    stranger = Stranger(order)
    if os.geteuid() == 0:  # everything is imported by now: nobody may not read it
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    else:
        stranger._files = []  # it is the owner's process, who may
    asyncio.run(stranger.run())
    print(json.dumps({"tried": stranger.tried, "findings": sorted(stranger.findings)}))


if __name__ == "__main__":
    main()
