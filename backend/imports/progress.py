"""The progress of an import: rows, rows a second, the time that is left."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:,.0f} rows/s")


class ImportMeter:
    """A line for each table. Any thread may tell of rows."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} rows"), _Rate(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console)
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self.stored = self.rejected = 0

    def __enter__(self) -> ImportMeter:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def expect(self, table: str, rows: int, done: int = 0) -> None:
        """`rows` is a guess; `done` were stored before."""
        self._tasks[table] = self._progress.add_task(table, total=max(rows, done, 1), completed=done)

    def told(self, table: str, stored: int, rejected: int) -> None:
        with self._lock:
            self.stored += stored
            self.rejected += rejected
            self._progress.advance(self._tasks[table], stored + rejected)

    def finish(self, table: str) -> None:
        """The guess was one."""
        task = self._tasks[table]
        self._progress.update(task, total=max(self._progress.tasks[task].completed, 1))
