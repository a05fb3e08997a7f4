"""Quorums in memory: replicas of kraft_core.protocol, a network that loses and delays, and a judge."""
