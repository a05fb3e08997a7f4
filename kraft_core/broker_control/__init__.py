"""Brokers as the active controller admits, fences and removes them (KIP-631)."""
