"""Runs data jobs in the launcher: Spark SQL over scans of the shards, beside the job that holds the workers.

- Jobs run in a pool of their own, and so do the workers, whose share is what they need: neither starves the other. `JOBS_MAX` run
  at a time, the others wait for their turn; those that may not wait fail, also where the workers have all slots.
- A job belongs to the connection that asked for it, and is cancelled with it.
- The application lets a task fail as often as it likes, for the workers' sake. A job's are watched: after `FAILURES_MAX` it is over.
- Spark's SQL engine, and all that is for jobs only, is loaded with the first job.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backend.network.job_messages import AskJobs, CancelJob, JobRows, Jobs, JobStatus, ReadJob, RunJob
from backend.network.transport import Peer, failure, listen
from controller.registry import Address
from dataflow.errors import Condition, MillraceError

if TYPE_CHECKING:
    import pyarrow as pa

JOBS_MAX = 2
FAILURES_MAX = 4
WATCH_S = 0.25
IDLE_S_MAX = 60.0
"""A job that none of its tasks gets a slot for is given up after so long."""
MESSAGE_ROWS = 8192
TASKS_SHOWN_MAX = 1000
SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # what does not fit is an error, as in MySQL
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(MESSAGE_ROWS),
    "spark.sql.caseSensitive": "false",
}

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    peer: Peer
    message: RunJob
    batches: list[bytes] = field(default_factory=list)
    place: int = 0
    cancelled: bool = False
    reason: str = ""
    """Why it was cancelled, in words."""

    @property
    def group(self) -> str:
        return f"millrace-{self.message.job.hex()}"


class JobService:
    """Beside `worker_count` workers, of which `workers` says where they are. All but `run` happens in the event loop."""

    def __init__(self, context: Any, secret: bytes, pool: str, worker_count: int, workers: Callable[[], dict[int, Address]]) -> None:
        self._context = context
        self._secret = secret
        self._pool = pool
        self._worker_count = worker_count
        self._workers = workers
        self._jobs: dict[bytes, _Job] = {}
        self._threads = ThreadPoolExecutor(JOBS_MAX, thread_name_prefix="jobs")
        self._lock = threading.Lock()
        self._session: Any = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, host: str) -> int:
        """The port at which jobs are taken from now on."""
        self._server, port = await listen(host, 0, self._secret, self.handle, on_lost=self._lost)
        return port

    def handle(self, peer: Peer, request: int, message: Any) -> None:
        match message:
            case RunJob() if not message.may_wait and (reason := self._refusal()):
                peer.send(failure(MillraceError(Condition.UNKNOWN_ERROR, reason)), request)
            case RunJob():
                job = self._jobs[message.job] = _Job(peer, message)
                task = asyncio.ensure_future(self._carry_out(job, request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case ReadJob(name) if (found := self._jobs.get(name)) is not None and found.peer is peer:
                self._answer(found, request)
            case ReadJob():
                peer.send(failure(MillraceError(Condition.UNKNOWN_ERROR, "the job is over")), request)
            case CancelJob(name) if (found := self._jobs.get(name)) is not None and found.peer is peer:
                self._cancel(found, "it was cancelled")
            case AskJobs():
                peer.send(Jobs([self._status(each) for each in self._jobs.values()]), request)
            case _:
                log.debug("unexpected message %s", type(message).__name__)

    def _refusal(self) -> str:
        """Why no job can begin now, in words; empty if one can."""
        if sum(not each.batches for each in self._jobs.values()) >= JOBS_MAX:
            return f"Spark has {JOBS_MAX} jobs already"
        executors = self._context._jsc.sc().statusStore().executorList(True)
        slots = sum(executors.apply(place).totalCores() for place in range(executors.size()))
        return "" if slots > self._worker_count else self._no_slots

    @property
    def _no_slots(self) -> str:
        return f"Spark has no slots besides those of the {self._worker_count} workers"

    def _lost(self, peer: Peer) -> None:
        for job in [each for each in self._jobs.values() if each.peer is peer]:
            self._cancel(job, "who asked for it is gone")

    def _cancel(self, job: _Job, reason: str) -> None:
        self._jobs.pop(job.message.job, None)
        job.cancelled, job.reason = True, reason
        self._context.cancelJobGroup(job.group)

    async def _carry_out(self, job: _Job, request: int) -> None:
        watching = asyncio.ensure_future(self._watch(job))
        try:
            job.batches = await asyncio.get_running_loop().run_in_executor(self._threads, self.run, job)
            self._answer(job, request)
        except Exception as error:
            self._jobs.pop(job.message.job, None)
            reason = job.reason or reason_of(error)
            log.warning("job %s failed: %s", job.group, reason)
            job.peer.send(failure(MillraceError(Condition.UNKNOWN_ERROR, f"Spark's job failed: {reason}")), request)
        finally:
            watching.cancel()

    def _answer(self, job: _Job, request: int) -> None:
        """The next rows, one batch at a time."""
        batches = job.batches[job.place : job.place + 1]
        job.place += 1
        ended = job.place >= len(job.batches)
        if ended:
            self._jobs.pop(job.message.job, None)
        job.peer.send(JobRows(batches, ended), request)

    # --- in a thread

    def run(self, job: _Job) -> list[bytes]:
        """The statement's rows, as Arrow's IPC streams."""
        from backend.jobs.task_scan import PartReader, source_of
        from backend.scans.column_programs import packed

        context, message = self._context, job.message
        session = self._new_session()
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        context.setJobGroup(job.group, message.purpose, interruptOnCancel=True)
        addresses = self._workers()
        for scan in message.scans:
            session.dataSource.register(source_of(PartReader(scan, message.epoch, addresses, self._secret)))
            schema = ", ".join(f"{name} {kind}" for name, kind in scan.columns)
            session.read.format(scan.name).schema(schema).load().createOrReplaceTempView(scan.name)
        if job.cancelled:
            raise InterruptedError(job.reason)
        found: pa.Table = session.sql(message.sql).toArrow()
        return [packed(each) for each in found.to_batches(max_chunksize=MESSAGE_ROWS)]

    def _new_session(self) -> Any:
        from pyspark.sql import SparkSession

        with self._lock:
            if self._session is None:
                self._session = SparkSession(self._context)
        session = self._session.newSession()
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        session.conf.set("spark.sql.shuffle.partitions", str(max(1, self._context.defaultParallelism - self._worker_count)))
        return session

    # --- meanwhile

    async def _watch(self, job: _Job) -> None:
        """Cancel the job if its tasks fail again and again, or get no slot."""
        loop = asyncio.get_running_loop()
        busy_at = loop.time()
        while True:
            await asyncio.sleep(WATCH_S)
            stages = self._stages(job)
            if not stages or any(each.numActiveTasks for each in stages):
                busy_at = loop.time()
            elif loop.time() > busy_at + IDLE_S_MAX:
                self._cancel(job, self._no_slots)
            for stage in stages:
                if stage.numFailedTasks >= FAILURES_MAX:
                    self._cancel(job, self._failure(stage.stageId))
            if job.cancelled:
                return

    def _stages(self, job: _Job) -> list[Any]:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(job.group)]
        stages = {number for each in jobs if each is not None for number in each.stageIds}
        return [info for number in sorted(stages) if (info := tracker.getStageInfo(number)) is not None]

    def _status(self, job: _Job) -> JobStatus:
        stages = self._stages(job)
        done = sum(each.numCompletedTasks for each in stages)
        return JobStatus(job.message.job, job.message.purpose, job.message.epoch, sum(each.numTasks for each in stages), done)

    def _failure(self, stage: int) -> str:
        """What a task of the stage has failed with."""
        tasks = self._context._jsc.sc().statusStore().taskList(stage, 0, TASKS_SHOWN_MAX)
        for place in range(tasks.size()):
            message = tasks.apply(place).errorMessage()
            if message.isDefined():
                return reason_of(message.get())
        return "its tasks fail"


def reason_of(error: object) -> str:
    """What a failure says, without the stacks of Java and Python."""
    lines: list[str] = []
    for line in str(error).splitlines():
        if line.startswith(("\tat ", "Driver stacktrace", "JVM stacktrace")):
            break
        if line and not line[0].isspace() and not line.startswith("SQLSTATE"):
            lines.append(line)
    return lines[-1][:500] if lines else type(error).__name__
