"""`millrace top`: the overview of the page, in a terminal."""

from __future__ import annotations

import json
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from backend.client.status import ask, token_for

QUERIES_SHOWN = 15
TIMEOUT_S = 20.0


def watch(http: str, every_s: float, once: bool, console: Console) -> None:
    """Until Ctrl-C; raises what `ask_status` raises."""
    token, _ = token_for(http)

    def look() -> Group:
        overview, queries = (json.loads(ask(http + path, token, TIMEOUT_S)) for path in ("/v1/overview", "/v1/queries"))
        return screen(overview, queries["queries"], console.width)

    if once:
        console.print(look())
        return
    with Live(look(), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every_s)
                live.update(look(), refresh=True)
        except KeyboardInterrupt:
            return


def screen(overview: dict[str, Any], queries: list[dict[str, Any]], width: int) -> Group:
    moments = overview["moments"]
    now = {name: (values[-1] if values else None) for name, values in moments.items()}
    head = Text.assemble(
        ("ready" if overview["ready"] else "NOT READY", "bold green" if overview["ready"] else "bold red"),
        f"  millrace {overview['version']}  {overview['sessions']} sessions  "
        f"reads/s: {_rate(now['hits'])} memory, {_rate(now['asked'])} view, {_rate(now['evaluated'])} evaluated  writes/s: {_rate(now['writes'])}  "
        f"p50 {_ms(now['p50_ms'])}  p95 {_ms(now['p95_ms'])}  p99 {_ms(now['p99_ms'])}",
    )
    problems = [Text(each, style="red") for each in overview["problems"]]
    shards = Table("shard", "epoch", "views", "view memory", "of", "process", "on disk", box=None, header_style="bold")
    for each in overview["shards"]:
        if each["error"]:
            shards.add_row(str(each["shard"]), each["error"])
            continue
        sizes = [_mb(each[name]) for name in ("view_bytes", "limit_bytes", "resident_bytes", "stored_bytes")]
        shards.add_row(str(each["shard"]), f"{each['epoch']:,}", f"{each['views']:,}", *sizes)
    table = Table("answered", "count", "p50", "p95", "total", "query", box=None, header_style="bold", expand=True)
    for each in queries[:QUERIES_SHOWN]:
        total_ms = (each["mean_ms"] or 0) * each["count"]
        text = Text(" ".join(each["text"].split())[: max(width - 50, 20)])
        style = {"view": "green", "evaluated": "red"}.get(each["answered"], "blue")
        table.add_row(Text(each["answered"], style=style), f"{each['count']:,}", _ms(each["p50_ms"]), _ms(each["p95_ms"]), _ms(total_ms), text)
    return Group(head, *problems, "", shards, "", table)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 1:
        return f"{max(value * 1000, 1):.0f} µs"
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.2g} ms" if value < 10 else f"{value:.0f} ms"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
