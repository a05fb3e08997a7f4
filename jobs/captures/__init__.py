"""Captures: copied from running controllers, found, planned, read once, and stored in the lake."""
