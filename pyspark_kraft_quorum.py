"""Registers format("kraft_quorum"): Spark takes one data source of each module named pyspark_*."""

from transforms.source.quorum import KraftQuorumDataSource as DefaultSource

__all__ = ["DefaultSource"]
