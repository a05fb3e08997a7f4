"""Captured files to rows: which files are new, and their batches, records and checkpoints.

Spark's tasks scan and decode ranges of files; Python and Arrow identify files and make their rows of captures
and segments. Every byte is either decoded or listed in quarantine. Headers are scanned first, each distinct
batch is decoded once, and the content of a file is kept as epoch ranges.
"""
