"""Sessions that only answer questions: which statements `sql` and `serve` run, and who may connect."""
