"""Batches and records as Arrow columns."""
