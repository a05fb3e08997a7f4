"""Registers format("kraft"): Spark imports the modules on its path that are named pyspark_*."""

from transforms.live.kraft import KraftSource as DefaultSource

__all__ = ["DefaultSource"]
