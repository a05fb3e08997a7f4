"""Keeping a lake small, and registered in the catalogs of other programs."""
