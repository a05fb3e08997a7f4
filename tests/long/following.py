"""A Spark program that streams format("kraft") into a Delta table: python -m tests.long.following JSON.

The JSON has format, options, table, checkpoint, trigger (the arguments of DataStreamWriter.trigger).
"""

from __future__ import annotations

import json
import sys

from pyspark.errors import StreamingQueryException

from jobs.runtime.session import open_session

# Spark gives the process of a stream ten seconds to start, which a busy machine may exceed.
TOO_SLOW, TRIES = "Python worker failed to connect back", 10


def main(text: str) -> int:
    asked = json.loads(text)
    spark = open_session("local[2]", quick=True)
    stream = spark.readStream.format(asked["format"]).options(**asked["options"]).load()
    writer = stream.writeStream.format("delta").option("checkpointLocation", asked["checkpoint"])
    for left in reversed(range(TRIES)):
        query = writer.trigger(**asked["trigger"]).start(asked["table"])
        try:
            while not query.awaitTermination(1):
                pass
            break
        except StreamingQueryException as error:
            if not left or TOO_SLOW not in str(error):
                raise
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
