"""Registers format("kraft_quorum"): Spark takes one data source of each module named pyspark_*."""

from transforms.live.quorum import KraftQuorumSource as DefaultSource

__all__ = ["DefaultSource"]
