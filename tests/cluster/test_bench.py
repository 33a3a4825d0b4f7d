"""The benchmarks that start servers of their own, in their smallest form: they run, and say what they should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.repository import ROOT


def bench(folder: Path, *arguments: str, timeout_s: float = 240) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "backend.cli", "bench", *arguments, "--json"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_vote_measures_millrace_and_mariadb_and_draws_a_plot(tmp_path: Path) -> None:
    found = {each["metric"]: each for each in bench(tmp_path, "vote", "--quick")}
    throughput = found["throughput 95/5 zipf"]
    assert throughput["value"] > 0
    results = json.loads((tmp_path / "bench-results" / "vote.json").read_text())
    assert [case["system"] for case in results["cases"]] == [
        "millrace client", "millrace MySQL", "MariaDB counter", "MariaDB natural",
    ]  # fmt: skip
    assert (tmp_path / "bench-results" / "vote.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "bench-results" / "vote.svg").read_text()
    assert not list(tmp_path.glob("millrace-bench-*")), "nothing is left"


@pytest.mark.slow
def test_one_worker_and_two_are_given_the_same_votes_and_reads(tmp_path: Path) -> None:
    found = {each["metric"]: each for each in bench(tmp_path, "scale", "--quick", "--bound-ms=5000")}
    for mix in ("reads", "votes", "95/5"):
        assert found[f"throughput {mix} 2 workers"]["value"] > 0 and found[f"throughput {mix} 2 workers"]["peers"]["1 workers"] > 0
    assert found["workers_cpu votes 2 workers"]["value"] >= found["busiest_worker_cpu votes 2 workers"]["value"] > 0
    assert (tmp_path / "bench-results" / "scale.png").exists()


@pytest.mark.slow
def test_a_migration_is_timed_while_reads_and_writes_go_on(tmp_path: Path) -> None:
    found = {each["metric"]: each["value"] for each in bench(tmp_path, "migration", "--quick")}
    assert 0 < found["installed_ms"] < found["answered_ms"] <= found["kept_ms"]
    assert found["answered_again_median_ms"] > 0
    assert found["votes_before"] > 0 and found["votes_after"] > 0 and found["reads_before"] > 0
    assert (tmp_path / "bench-results" / "migration.png").exists()


@pytest.mark.slow
def test_eviction_is_compared_with_lru_on_the_same_lookups(tmp_path: Path) -> None:
    found = {each["metric"]: each for each in bench(tmp_path, "eviction", "--quick")}
    assert 0 < found["hit_rate"]["value"] < 100 and 0 < found["hit_rate"]["peers"]["LRU"] < 100
    assert 0 < found["keys_kept"]["value"] < 3_000


@pytest.mark.slow
def test_stalls_are_measured_while_a_statement_is_heavy(tmp_path: Path) -> None:
    found = {each["metric"]: each["value"] for each in bench(tmp_path, "stalls", "--rows=2000", "--only=update_all,in_list")}
    assert found["update_all statement_s"] > 0 and found["in_list statement_s"] > 0
    assert 0 < found["update_all hit_p99_ms"] <= found["update_all hit_max_ms"]
    assert found["goals_missed"] >= 0 and "update_all" in (tmp_path / "bench-results" / "stalls.txt").read_text()
    [first, second] = json.loads((tmp_path / "bench-results" / "stalls.json").read_text())["statements"]
    assert (first["error"], second["error"]) == ("", "")


def test_lobsters_pages_are_served_and_timed_by_page_and_statement(tmp_path: Path) -> None:
    found = {each["metric"]: each["value"] for each in bench(tmp_path, "lobsters", "--quick", "--rate=20", "--bound-ms=5000", "--cases=MariaDB natural")}
    assert found["throughput, MariaDB natural"] > 0 and found["server_cpu, MariaDB natural"] > 0
    [case] = json.loads((tmp_path / "bench-results" / "lobsters.json").read_text())["cases"]
    [point] = case["points"]
    assert point["errors"] == 0, point["first_errors"]
    assert point["statements"]["notif.replies"][0] > 0 and point["pages"]["frontpage"][0] > 0
    assert (tmp_path / "bench-results" / "lobsters.png").exists()


@pytest.mark.slow
def test_lobsters_on_millrace_says_how_statements_were_answered_and_none_differs(tmp_path: Path) -> None:
    bench(tmp_path, "lobsters", "--quick", "--rate=20", "--cases=millrace natural", "--bound-ms=5000")
    [case] = json.loads((tmp_path / "bench-results" / "lobsters.json").read_text())["cases"]
    assert case["points"][0]["errors"] == 0 and case["points"][0]["answered_by"]["reads a page"] > 1
    found = bench(tmp_path, "lobsters", "--quick", "--check=300")
    assert [each["value"] for each in found] == [0, 0]
