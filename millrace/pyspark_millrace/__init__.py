"""What Spark finds by itself: it looks for modules whose names begin with `pyspark_`, and registers their `DefaultSource`."""

from backend.spark.source import MillraceSource as DefaultSource

__all__ = ["DefaultSource"]
