"""Bytes to batches, records and checkpoints: what Spark's tasks do with the ranges of captured files.

Every byte is either decoded or named in quarantine. Headers are scanned first, each distinct batch is decoded
once, and what a file held is kept as epoch ranges.
"""
