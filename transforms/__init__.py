"""Captures to tables, in wings that import only to the left: lake, ingest, source, evidence or live,
histories, quality.

Spark where data is large (segments, records, a fleet's clusters), Arrow and delta-rs where it is small (a
cluster's facts, side tables): a query costs Spark a second to plan before it moves a row.
"""
