"""A Spark driver of its own, to be killed: counts votes by story with a stream, for ever. Arguments: url, checkpoint.

It prints a line for each batch that is done, and starts a query that fails again, as a service would.
"""

from __future__ import annotations

import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A driver lives for a minute or so: the JVM need not compile its code well."""
POLL_S = 0.1


def main(url: str, checkpoint: str) -> None:
    builder = SparkSession.builder.master("local[2]").appName("driver").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", QUICK_START).config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    stream = spark.readStream.format("millrace").option("url", url).option("dbtable", "votes").option("changes", "true")
    counts = stream.option("startingEpoch", "earliest").option("maxRowsPerTrigger", "50").load().groupBy("story").sum("millrace_weight")
    sink = counts.toDF("story", "n").writeStream.format("millrace").option("url", url).option("dbtable", "counts")
    sink = sink.outputMode("complete").option("checkpointLocation", checkpoint)
    while True:
        query, done = sink.start(), -1
        try:
            while not query.awaitTermination(POLL_S):
                progress = query.lastProgress
                if progress is not None and progress["batchId"] != done:
                    done = progress["batchId"]
                    print("batch", done, flush=True)
        except StreamingQueryException as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
