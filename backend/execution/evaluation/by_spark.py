"""A query's node over many rows, evaluated by a job of Spark where that gives exactly the same rows (`backend.jobs`).

Rows are read one by one first: what an index finds, and tables of up to `DataJobs.rows_min` rows, never becomes a job. A query without an exact
form, one whose job fails and one that finds no slot are evaluated by rows, from the beginning and as of the same epoch; of a job that was
tried the statement is told why. Rows that are locked, or that the transaction has written itself, are always read one by one.
"""

from __future__ import annotations

import logging
import os
from contextlib import aclosing
from dataclasses import replace

from backend.execution.evaluation.by_column import (
    KEYS_MAX,
    PARAMETERS_MAX,
    all_of,
    bound_values,
    key_condition,
)
from backend.execution.evaluation.reader import Keys, ManyRows, Reader, Run
from backend.execution.rows import Rows
from backend.jobs.data_jobs import DataJobs, JobFailed
from backend.jobs.spark_sql import SparkQuery, spark_query
from backend.jobs.spark_types import NoForm
from backend.scans.scan_jobs import forget_epoch, keep_again
from controller.sql.plan import Query
from controller.sql.text.depth import deeply
from dataflow.errors import Condition
from dataflow.expressions.expression import Column
from dataflow.plan.node import Base, Columns, Join, Node, inputs_of
from dataflow.values.storing import NOTE, Notice
from dataflow.values.types import Row, Value

HOLD_S = 600.0
USES_AFTER_FAILURE = 50
"""So many times the query is evaluated by rows after its job has failed, before another is tried."""

log = logging.getLogger(__name__)


class BySpark:
    """The rows of a query's node that have the keys and pass the filter, unless that has to wait for a default row."""

    def __init__(self, query: Query, key_columns: Columns) -> None:
        self._node = query.node
        self._tables = {each.id: each for each in query.tables if each.id >= 0}
        self._filter = query.filter if query.default is None else None
        self._keys = [Column(each, query.node.types[each]) for each in key_columns]
        self._bases = list(_bases(query.node))
        self._has_form = True
        self._by_rows_only = 0

    async def rows(self, run: Run, keys: Keys | None, by_rows: Reader) -> list[Row]:
        jobs = run.execution.transaction.store.jobs if self._bases else None
        if jobs is None or not self._applies(run, keys):
            return await by_rows.rows(run, keys)
        if jobs.rows_min:
            try:
                return await by_rows.rows(replace(run, rows_max=jobs.rows_min, estimated_rows=jobs.estimated_rows, kept={}), keys)
            except ManyRows:
                pass
        try:
            query = deeply(lambda: self._query(keys, run.parameters))
            return await self._done(jobs, query, run)
        except NoForm:
            self._has_form = False
        except JobFailed as error:
            self._by_rows_only = USES_AFTER_FAILURE
            log.warning("a query is evaluated by rows: %s", error)
            run.execution.report.notices.append(Notice(NOTE, Condition.UNKNOWN_ERROR, (f"Evaluated by rows: {error}",)))
        return await by_rows.rows(run, keys)

    def obstacle(self, parameters: tuple[Value, ...]) -> str:
        """Why there is no job of it, however many rows there are, in words; empty if there is."""
        try:
            deeply(lambda: self._query(None, parameters))
        except NoForm as error:
            return str(error)
        return ""

    def _applies(self, run: Run, keys: Keys | None) -> bool:
        if self._by_rows_only:
            self._by_rows_only -= 1
            return False
        pending = run.execution.transaction.pending_rows
        is_plain = not run.locks and not any(True for table in self._tables for _ in pending(table))
        return is_plain and self._has_form and (keys is None or 0 < len(keys) <= KEYS_MAX)

    def _query(self, keys: Keys | None, parameters: tuple[Value, ...]) -> SparkQuery:
        """Raises `NoForm`."""
        if not self._bases or not all(each.table in self._tables for each in self._bases):
            raise NoForm("rows that are not stored")
        if len(parameters) > PARAMETERS_MAX:
            raise NoForm("many values")
        condition = all_of([self._filter, key_condition(self._keys, keys)])
        wanted = self._node if condition is None else Join((self._node,), filter=condition)
        bound = bound_values(wanted, parameters)
        if bound is None:
            raise NoForm("a value that is known to the session only")
        return spark_query(bound)

    async def _done(self, jobs: DataJobs, query: SparkQuery, run: Run) -> list[Row]:
        epoch, lease = await run.execution.epoch(), os.urandom(12)
        await keep_again(jobs.cluster, lease, epoch, HOLD_S)  # the tasks are not we, who hold it
        try:
            found: Rows[Row] = Rows()
            async with aclosing(jobs.rows(query, self._tables, epoch, "query", for_statement=True)) as batches:
                async for rows in batches:
                    found.add(rows)
            return found
        finally:
            await forget_epoch(jobs.cluster, lease)


def _bases(node: Node) -> list[Base]:
    return [node] if isinstance(node, Base) else [each for inner in inputs_of(node) for each in _bases(inner)]
