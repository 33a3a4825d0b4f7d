"""The health of a cluster: whether clients can use it, and if not, one line that names the fault.

Everything is asked: shards over the connections that statements use, the adapters' port with the first packet of a
MySQL connection, ZooKeeper for who leads, the processes' signs of life (`backend.processes.heartbeat`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from backend.network.connections import ShardConnections
from backend.network.messages import ShardStatus
from backend.processes.heartbeat import Sign, signs
from backend.processes.settings import Deployment
from controller.registry import Registry
from dataflow.errors import MillraceError

ANSWER_S = 2.0
SILENCE_S = 5.0
"""A process that has given no sign of life for so long answers nobody either."""


class Health:
    def __init__(self, deployment: Deployment, registry: Registry, shards: ShardConnections) -> None:
        self._deployment = deployment
        self._registry = registry
        self._shards = shards
        self._asking: asyncio.Task[dict[str, Any]] | None = None

    async def status(self) -> dict[str, Any]:
        """What `millrace status` and the HTTP interface show. Who asks while others do gets the same answer."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._status())
        return dict(await asyncio.shield(self._asking))

    async def _status(self) -> dict[str, Any]:
        deployment = self._deployment
        shards, leader, adapters, port = await asyncio.gather(
            asyncio.gather(*(self._shard(shard) for shard in range(deployment.shard_count))),
            self._of_registry(self._registry.leader),
            self._of_registry(self._registry.adapters),
            greets(deployment.host, deployment.mysql_port),
        )
        found = signs(deployment.secret_bytes)
        problems = process_problems(deployment.process_names, found)
        problems += [f"shard {each['shard']}: {each['error']}" for each in shards if "error" in each]
        if leader is None:
            problems.append("no controller leads")
        listening = 0 if adapters is None else len(adapters)
        if listening < deployment.adapter_count:
            problems.append(f"{listening} of {deployment.adapter_count} adapter(s) listen")
        if not port:
            problems.append(f"nobody greets MySQL clients at {deployment.host}:{deployment.mysql_port}")
        faults = [fault for each in shards for fault in shard_faults(each)]
        return {
            "ready": not problems and not faults,
            "problems": problems + faults,
            "faults": faults,
            "mysql": f"mysql://root@{deployment.host}:{deployment.mysql_port}",
            "data": deployment.data,
            "master": deployment.master,
            "zookeeper": deployment.zookeeper,
            "root": deployment.root,
            "leader": leader.process if leader else None,
            "processes": [
                {"name": each.name, "process": each.process if each.is_alive else None, "restarts": each.starts - 1}
                for each in found.values()
            ],
            "shards": list(shards),
        }

    async def _shard(self, shard: int) -> dict[str, Any]:
        try:
            status: ShardStatus = await asyncio.wait_for(self._shards.status(shard), ANSWER_S)
        except (TimeoutError, MillraceError, OSError) as error:
            return {"shard": shard, "error": str(error) or "no answer"}
        return {name: getattr(status, name) for name in ShardStatus.__dataclass_fields__}

    async def _of_registry(self, ask: Any) -> Any:
        with contextlib.suppress(TimeoutError, MillraceError):
            return await asyncio.wait_for(asyncio.to_thread(ask), ANSWER_S)
        return None


def process_problems(names: tuple[str, ...], found: Mapping[str, Sign]) -> list[str]:
    """`names` must be there; workers may be, where they are on this machine."""
    problems = [f"{name} does not run" for name in names if name not in found or not found[name].is_alive]
    for name, sign in found.items():
        if sign.loops:
            problems.append(f"{name} ends again and again: {sign.starts} starts; see its log")
        elif sign.is_alive and not sign.beaten_at:
            problems.append(f"{name} is starting")
        elif sign.is_alive and sign.silent_s > SILENCE_S:
            problems.append(f"{name} gave no sign of life for {sign.silent_s:.0f} s")
    return problems


def shard_faults(status: Mapping[str, Any]) -> list[str]:
    """What is wrong with a shard that answers, and stays so until somebody does something about it."""
    faults = []
    if status.get("damage"):
        faults.append(f"shard {status['shard']} is damaged: {status['damage']}")
    if status.get("read_only"):
        faults.append(f"shard {status['shard']} is read-only: the disk is full")
    return faults


async def greets(host: str, port: int) -> bool:
    """Whether a MySQL server begins to talk there."""
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                first = await reader.readexactly(5)
            finally:
                writer.close()
            return first[3:] == b"\0\x0a"
    return False


async def answers_ruok(address: str) -> bool:
    """Whether a ZooKeeper server says that it is well."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(b"ruok")
                return await reader.readexactly(4) == b"imok"
            finally:
                writer.close()
    return False
