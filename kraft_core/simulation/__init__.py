"""Quorums in memory: replicas of kraft_core.protocol, a network that loses messages, random faults.

A run is a seed and a list of actions; nothing else decides it. After every step the rules of kraft_core.raft
are judged. `python -m kraft_core.simulation --help` runs one; docs/protocol.md shows how.
"""
