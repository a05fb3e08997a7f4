"""A Spark program that streams format("kraft") into a Delta table: python -m tests.long.following JSON.

The JSON has format, options, table, checkpoint, trigger (the arguments of DataStreamWriter.trigger).
"""

from __future__ import annotations

import json
import signal
import sys

from jobs.runtime.session import open_session


def main(text: str) -> int:
    asked = json.loads(text)
    spark = open_session("local[2]", quick=True)
    stream = spark.readStream.format(asked["format"]).options(**asked["options"]).load()
    writer = stream.writeStream.format("delta").option("checkpointLocation", asked["checkpoint"])
    query = writer.trigger(**asked["trigger"]).start(asked["table"])
    signal.signal(signal.SIGTERM, lambda *_: query.stop())
    print("started", flush=True)
    while not query.awaitTermination(1):
        pass
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
