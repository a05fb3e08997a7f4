"""Read-only sessions: which statements `sql` and `serve` run, and who may connect."""
