"""`millrace bench eviction`: room for a fifth of the state, and how many lookups find their key in it.

Stories of the vote application are looked up one by one, by Zipf, while the views may take only
a part of the memory that all of them take. A lookup hits if it finds its key in shared memory, else
it waits for the worker to compute it. Beside the hit rate stand those of an ideal LRU and of
random eviction, simulated on the same lookups with as many keys as were kept on average; and
of an LRU whose keys take no more memory than their share of the full state.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from backend.bench import Advance, Measurement
from backend.bench.cache_simulation import lru_hits, random_hits
from backend.bench.cluster import scratch
from backend.bench.options import option
from backend.bench.servers import millrace
from backend.shared_memory.segment import FOLDER, prefix_of

BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True)
class Options:
    stories: int = option(50_000, "number of stories")
    votes: int = option(50_000, "number of votes")
    lookups: int = option(400_000, "number of lookups, of which the second half counts")
    share: float = option(0.2, "the part of the full state that there is memory for")
    quick: bool = option(False, "a smoke test: few stories and lookups")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    if options.quick:
        options = replace(options, stories=3_000, votes=3_000, lookups=10_000)
    with scratch() as folder:
        data = folder / "millrace"
        flags = ("--durability=os", "--controllers=1")
        advance("loading, and reading every story", 0.02)
        with millrace(data, "--memory=8G", *flags) as server:
            everything = _run(data, server.port, "fill", options)
            full_bytes = everything["bytes"] + _shared_bytes(data)
        limit = int(full_bytes * options.share)
        advance(f"{options.lookups:,} lookups with {limit / 1e6:,.1f} MB", 0.4)
        with millrace(data, f"--memory={limit}", *flags) as server:
            found = _run(data, server.port, "read", options)
    advance("simulating LRU", 0.95)
    counted = slice(options.lookups // 2, None)
    trace, capacity = found["trace"], round(np.mean(found["kept"][len(found["kept"]) // 2 :]))
    simulated = {
        "LRU": lru_hits(trace, capacity),
        "random": random_hits(trace, capacity),
        f"LRU of {options.share:.0%} of the keys": lru_hits(trace, round(options.share * options.stories)),
    }
    peers = {name: 100 * float(np.mean(hits[counted])) for name, hits in simulated.items()}
    hits, waits_ms = np.array(found["hits"])[counted], np.array(found["waits_ms"])[counted]
    yield Measurement("eviction", "hit_rate", 100 * float(hits.mean()), "%", peers)
    yield Measurement("eviction", "keys_kept", float(capacity), "keys", {"all": float(everything["keys"])})
    yield Measurement("eviction", "memory_limit", limit / 1e6, "MB", {"all": full_bytes / 1e6})
    yield Measurement("eviction", "lookup_p95", float(np.quantile(waits_ms, 0.95)), "ms")
    yield Measurement("eviction", "miss_p95", float(np.quantile(waits_ms[~hits], 0.95)) if not hits.all() else 0.0, "ms")


def _shared_bytes(data: Path) -> int:
    """What the views in shared memory take."""
    files = FOLDER.glob(f"{prefix_of(str(data))}*")
    return sum(each.stat().st_blocks * BLOCK_BYTES for each in files)


def _run(data: Path, port: int, role: str, options: Options) -> dict[str, Any]:
    command = [sys.executable, "-m", "apps.vote.lookups", str(data), str(port), role]
    command += [str(each) for each in (options.stories, options.votes, options.lookups)]
    with tempfile.NamedTemporaryFile("r") as output:
        subprocess.run([*command, output.name], check=True)
        found: dict[str, Any] = json.load(output)
    return found
