"""Quorums in memory: replicas of kraft_core.protocol, a network that loses messages, random faults.

A seed and a list of actions determine a run. After every step the rules of kraft_core.raft are checked.
`python -m kraft_core.simulation --help` runs one; docs/protocol.md shows how.
"""
