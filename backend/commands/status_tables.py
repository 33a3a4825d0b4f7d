"""The status of a cluster as tables in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def show_status(found: dict[str, Any], console: Console) -> None:
    console.print(
        f"{'ready' if found['ready'] else 'not ready'}  {found['mysql']}  data {found['data']}  Spark {found['master']}"
    )
    for problem in found["problems"]:
        console.print(problem)
    processes = Table("process", "pid", "restarts")
    for each in found["processes"]:
        processes.add_row(each["name"], str(each["process"] or "-"), str(each["restarts"]))
    console.print(processes)
    shards = Table("shard", "pid", "epoch", "transactions", "reads", "views", "view memory", "on disk", "memory")
    for each in found["shards"]:
        if "error" in each:
            shards.add_row(str(each["shard"]), "-", each["error"])
        else:
            shards.add_row(
                str(each["shard"]),
                str(each["process"]),
                f"{each['epoch']:,}",
                f"{each['transactions']:,}",
                f"{each['reads']:,}",
                f"{each['views']:,}",
                f"{each['view_bytes'] / 1e6:,.1f} MB",
                f"{each['stored_bytes'] / 1e6:,.1f} MB",
                f"{each['resident_bytes'] / 1e6:,.0f} MB",
            )
    console.print(shards)
    for each in found["shards"]:
        if each.get("only_full_views_left"):
            console.print(f"shard {each['shard']}: views that must be kept whole take more memory than --memory allows")
