"""MariaDB's own test files, asked of MariaDB and of millrace side by side.

    make compatibility ARGS="--suite mariadb-test [--workers 2] [--repeat 3] [FILE …]"

The files are those of Debian's package mariadb-test-data; which of them are left out, and which differences are not
millrace's to mend, is in `apart.toml`. Prints a line for each file; all that differed goes to `--differences`, a line of JSON each.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path
from shutil import rmtree

from tests.compatibility.mariadb_test.apart import Rules
from tests.compatibility.mariadb_test.comparison import Kind
from tests.compatibility.mariadb_test.dialogue import Dialogue, Verdict
from tests.compatibility.mariadb_test.rewriting import Rewriting
from tests.compatibility.mariadb_test.script import Ended, Script, Skipped
from tests.compatibility.mariadb_test.servers import ClusterMillrace, EmbeddedMillrace, Oracle

ROOT = Path("/usr/share/mysql/mysql-test")
MISSING = f"{ROOT} is not there: install the Debian package mariadb-test-data, or run `make setup` as root."
STATEMENT_TIMEOUT_S = 10.0
FILE_TIMEOUT_S = 400.0


@dataclass(frozen=True, slots=True)
class Options:
    workers: int = 1
    repeats: int = 1
    statement_timeout_s: float = STATEMENT_TIMEOUT_S
    file_timeout_s: float = FILE_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class FileReport:
    name: str
    verdicts: tuple[Verdict, ...]
    seconds: float
    skipped: str = ""
    log: str = ""

    @property
    def counts(self) -> Counter[Kind]:
        return Counter(each.kind for each in self.verdicts)


def chosen_files() -> list[str]:
    """All of the main suite but what `apart.toml` leaves out."""
    if not ROOT.exists():
        raise RuntimeError(MISSING)
    left_out = Rules().files
    names = sorted(path.stem for path in (ROOT / "main").glob("*.test"))
    return [name for name in names if not any(fnmatch(name, pattern) for pattern in left_out)]


class Comparer:
    """Both servers of one process, over many files."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rules = Rules()
        self._oracle = Oracle()
        self._cluster = ClusterMillrace(options.workers) if options.workers > 1 else None

    def close(self) -> None:
        self._oracle.stop()
        if self._cluster is not None:
            self._cluster.stop()

    def _clean_oracle(self) -> None:
        try:
            self._oracle.clean()
        except Exception:  # the file before has left a server that nobody gets into any more
            self._oracle.stop()
            self._oracle = Oracle()
            self._oracle.clean()

    def compare(self, name: str) -> FileReport:
        path = ROOT / f"{name}.test" if "/" in name else ROOT / "main" / f"{name}.test"
        started = time.monotonic()
        millrace = self._cluster or EmbeddedMillrace()
        scratch = Path(tempfile.mkdtemp(prefix="millrace-mariadb-test-files-"))
        verdicts: list[Verdict] = []

        def record(verdict: Verdict) -> None:
            verdicts.append(verdict)
            if time.monotonic() - started > self._options.file_timeout_s:
                raise Ended

        skipped = ""
        try:
            self._clean_oracle()
            millrace.prepare()
            dialogue = Dialogue(
                self._oracle.address, millrace.address, Rewriting(ROOT / "std_data", scratch), self._rules,
                self._options.statement_timeout_s, self._options.repeats, record,
            )  # fmt: skip
            try:
                Script(dialogue, ROOT, scratch).run(path)
            except Skipped as reason:
                skipped = str(reason)
            except Exception as error:  # one file's failure is not that of the others
                skipped = f"{type(error).__name__}: {error}"
            dialogue.close()
            return FileReport(name, tuple(verdicts), time.monotonic() - started, skipped, millrace.log)
        finally:
            rmtree(scratch, ignore_errors=True)
            if self._cluster is None:
                millrace.stop()


_comparer: list[Comparer] = []


def _compare(name: str, options: Options) -> FileReport:
    if not _comparer:
        comparer = Comparer(options)
        Finalize(None, comparer.close, exitpriority=1)
        _comparer.append(comparer)
    return _comparer[0].compare(name)


def compare_files(names: Sequence[str], options: Options, processes: int) -> Iterator[FileReport]:
    """The reports in the order in which they are done; each process has servers of its own.

    The processes are made anew: they fork themselves, and the one that asks may have threads that hold locks.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(partial(_compare, options=options), names)


def line_of(report: FileReport) -> str:
    counts = report.counts
    figures = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    note = f"  ({report.skipped})" if report.skipped else ""
    return f"{report.name:<36} {figures}  {report.seconds:.0f} s{note}"


INCOMPARABLE = (Kind.APART, Kind.ABSENT, Kind.FOLLOWED)


def share_same(counts: Counter[Kind], left_out: Sequence[Kind] = INCOMPARABLE) -> float:
    comparable = counts.total() - sum(counts[kind] for kind in left_out)
    return 100 * counts[Kind.SAME] / max(1, comparable)


def main(names: Sequence[str], options: Options, processes: int, differences: Path) -> list[FileReport]:
    totals: Counter[Kind] = Counter()
    reports = []
    with differences.open("w") as output:
        for report in compare_files(names or chosen_files(), options, processes):
            print(line_of(report), flush=True)
            reports.append(report)
            totals += report.counts
            for each in report.verdicts:
                if each.kind is not Kind.SAME:
                    entry = {
                        "file": report.name, "place": each.place, "kind": each.kind.value, "statement": each.statement,
                        "mariadb": each.expected, "millrace": each.found, "reason": each.reason,
                    }  # fmt: skip
                    output.write(json.dumps(entry, ensure_ascii=True) + "\n")
            output.flush()
    print("\n" + ", ".join(f"{totals[kind]} {kind}" for kind in Kind))
    print(f"{share_same(totals):.2f} % of the comparable statements are the same; differences in {differences}")
    return reports
