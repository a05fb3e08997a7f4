"""Entry point of the bundle's tasks: run a verb of kraftlake and exit with its code."""

from jobs.cli import main

if code := main():
    raise SystemExit(code)
