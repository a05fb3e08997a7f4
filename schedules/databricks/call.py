"""What the bundle's tasks run: a verb of kraftlake, its exit code as the task's."""

from jobs.cli import main

if code := main():
    raise SystemExit(code)
