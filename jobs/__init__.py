"""Batch entry points and the command line: parse arguments, open Spark, read, transform, write."""
