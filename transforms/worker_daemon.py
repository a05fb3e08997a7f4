"""Spark's daemon of Python workers in a local session: it imports once what each of them would import.

Workers are forked from it. In a cluster it is Spark's own: modules may reach a worker with its first task.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401 (Arrow imports it when it makes a first array of numbers)
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark import daemon

import transforms.histories.replay_tasks
import transforms.live.quorum
import transforms.quality.snapshot_checks  # noqa: F401
from kraft_core.columnar import fast
from transforms.ingest import spark_frames  # noqa: F401

if __name__ == "__main__":
    # Compiled functions are loaded at their first call.
    assert not list(fast.decode_bytes(b""))
    # Workers look for garbage after each task: not among these.
    gc.collect()
    gc.freeze()
    daemon.manager()
