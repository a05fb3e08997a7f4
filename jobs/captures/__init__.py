"""Captures: copied from live controllers, found in what is given, planned, read once, kept in the lake."""
