"""The cluster's metadata at a moment, from a lake or a captured replica; used by shell and diff."""
