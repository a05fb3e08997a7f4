"""Spark's daemon of Python workers, with what each of them would import and load for itself."""

import gc
from pathlib import Path

import pandas  # noqa: F401
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark import daemon

import transforms.histories.replay_tasks
import transforms.live.quorum
import transforms.quality.snapshot_checks  # noqa: F401
from kraft_core.columnar import fast
from transforms.ingest import spark_frames  # noqa: F401

LOG = Path(__file__).parent / "golden/corrupt/good/00000000000000000408.log"

if __name__ == "__main__":
    # Compiled functions are loaded at their first call.
    assert list(fast.scan_headers(LOG))
    assert list(fast.decode(LOG))
    # Workers look for garbage after each task: not among these.
    gc.collect()
    gc.freeze()
    daemon.manager()
