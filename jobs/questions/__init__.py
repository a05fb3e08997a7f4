"""Questions to a lake: the read-only sessions of `sql` and `serve`, who may connect, and answers as text."""
