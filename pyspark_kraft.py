"""Registers format("kraft"): Spark imports the modules on its path that are named pyspark_*."""

from transforms.source.kraft import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
