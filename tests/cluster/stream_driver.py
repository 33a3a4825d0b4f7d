"""A Spark driver of its own, to be killed: counts votes by story with a stream, for ever. Arguments: url, checkpoint."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(url: str, checkpoint: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("driver").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    stream = spark.readStream.format("millrace").option("url", url).option("dbtable", "votes").option("changes", "true")
    counts = stream.option("startingEpoch", "earliest").option("maxRowsPerTrigger", "50").load().groupBy("story").sum("millrace_weight")
    sink = counts.toDF("story", "n").writeStream.format("millrace").option("url", url).option("dbtable", "counts")
    print("started", flush=True)
    sink.outputMode("complete").option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
