"""The process that Spark forks its Python processes from. It loads the modules of data jobs once, so that tasks need not."""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import backend.jobs.task_scan  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    manager()
