"""Compactions leave the processor to others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, os, sys
from pathlib import Path
from persistence.files.compaction import NICENESS
from persistence.shard_store import ShardStore

stores = [ShardStore(Path(sys.argv[1]) / name) for name in ("a", "b")]
others = [int(name) for name in os.listdir("/proc/self/task") if int(name) != os.getpid()]
print(json.dumps([NICENESS, os.getpriority(os.PRIO_PROCESS, 0), [os.getpriority(os.PRIO_PROCESS, each) for each in others]]))
"""


def test_the_thread_that_compacts_comes_after_all_others(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, check=True, text=True)
    niceness, own, others = json.loads(ran.stdout)
    assert [each for each in others if each != own] == [own + niceness]  # those of numpy are as they were
