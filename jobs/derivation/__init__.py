"""Derived tables: evidence, findings, checks of snapshots and histories of the metadata."""
