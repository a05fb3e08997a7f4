"""Uploads that killed tasks left unfinished: a store does not list their parts, but charges for them."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

from transforms.lake.storage.location import StoreUrl
from transforms.lake.storage.table_folders import spark_location


def abort_uploads(spark: SparkSession, lake: StoreUrl, hours: float) -> int:
    """Abort the uploads below a lake that were begun more than this many hours ago. Returns how many."""
    session: Any = spark
    place = session._jvm.org.apache.hadoop.fs.Path(spark_location(lake))
    uploads = place.getFileSystem(session._jsc.hadoopConfiguration()).getWriteOperationHelper()
    before_ms, aborted = (time.time() - hours * 3600) * 1000, 0
    for upload in uploads.listMultipartUploads(f"{lake.key}/"):
        if upload.initiated().toEpochMilli() < before_ms:
            uploads.abortMultipartUpload(upload)
            aborted += 1
    return aborted
