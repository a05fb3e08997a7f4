"""Captured files to rows: which files are new, and their batches, records and checkpoints.

Spark's tasks scan and decode ranges of files; what identifies a file, and its row of captures or segments, is
Python and Arrow. Every byte is either decoded or named in quarantine. Headers are scanned first, each
distinct batch is decoded once, and what a file held is kept as epoch ranges.
"""
