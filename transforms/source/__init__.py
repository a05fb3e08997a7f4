"""Spark's data sources: format("kraft"), the records of captured files, and format("kraft_quorum").

Spark plans them without this package's driver: options in, partitions out, and each task reads its part with
the scan and the decoder of ingest. Nothing is written.
"""
