"""Requests of Spark's own connector to a lake's store, which its JVM counts."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.objects import Request, count_requests
from transforms.lake.storage.table_folders import spark_location

# Names of Hadoop's org.apache.hadoop.fs.s3a.Statistic.
_COUNTERS: dict[str, Request] = {
    "object_list_request": "LIST",
    "object_continue_list_request": "LIST",
    "action_http_get_request": "GET",
    "action_http_head_request": "GET",
    "object_put_request": "PUT",
    "object_delete_request": "DELETE",
    "object_bulk_delete_request": "DELETE",
}
_COUNTER = re.compile(r"\((\w+)=(\d+)\)")


def count_spark_requests(spark: SparkSession, lake: Location) -> None:
    """Add those of the driver's JVM, and of the tasks in it; to be called once, when a run ends."""
    if not isinstance(lake, StoreUrl):
        return
    session: Any = spark
    hadoop = session._jvm.org.apache.hadoop.fs
    if not _is_used(hadoop):
        return
    files = hadoop.Path(spark_location(lake)).getFileSystem(session._jsc.hadoopConfiguration())
    said = hadoop.statistics.IOStatisticsLogging.ioStatisticsSourceToString(files)
    for name, number in _COUNTER.findall(said):
        if name in _COUNTERS:
            count_requests(_COUNTERS[name], int(number))


def _is_used(hadoop: Any) -> bool:
    """Whether the connector has been loaded, which takes a second."""
    return any(scheme.getScheme() == "s3a" for scheme in hadoop.FileSystem.getAllStatistics())
