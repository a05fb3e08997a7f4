"""The command line and its jobs: parse arguments, open Spark if needed, read, transform, write."""
