"""What Spark forks its Python processes from: all that tasks of data jobs need is loaded before, once, not by each of them."""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import backend.jobs.task_scan  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    manager()
