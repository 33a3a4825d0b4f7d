"""The module by which Spark finds the data source: Spark registers the `DefaultSource` of modules whose names begin with `pyspark_`."""

from backend.spark.source import MillraceSource as DefaultSource

__all__ = ["DefaultSource"]
