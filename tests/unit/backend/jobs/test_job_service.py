"""What is said of a job that failed."""

from __future__ import annotations

from backend.jobs.job_service import reason_of

FAILED = """org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "task_scan.py", line 41, in read
    raise error
dataflow.errors.Retryable: epoch 1 is not kept any more
SQLSTATE: 38000

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
Caused by: something else
"""


def test_the_last_line_of_a_traceback_is_the_reason() -> None:
    assert reason_of(FAILED) == "dataflow.errors.Retryable: epoch 1 is not kept any more"
    assert reason_of(ValueError("")) == "ValueError"
