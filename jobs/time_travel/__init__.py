"""The cluster's metadata at a moment, from a lake or a replica: what shell and diff stand on."""
