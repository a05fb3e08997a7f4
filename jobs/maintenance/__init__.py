"""What keeps a lake small, and known to the catalogs of other programs."""
