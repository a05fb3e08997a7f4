"""What min.insync.replicas costs producers with acks=all (Partition.isUnderMinIsr)."""

from __future__ import annotations

from kraft_core.plan.risks import Risk


def is_under(in_sync: int, replicas: int, least: int) -> bool:
    """Whether acks=all fails; Kafka demands no more than there are replicas."""
    return in_sync < min(least, replicas)


def has_no_spare(replicas: int, least: int) -> bool:
    """Whether acks=all fails as soon as one of several replicas is down."""
    return min(least, replicas) == replicas > 1


def no_spare_replica(whose: str, least: int) -> Risk:
    """whose: a topic, or partitions, in words."""
    words = f"every replica of {whose} must be in sync for acks=all (min.insync.replicas {least})"
    return Risk("no_spare_replica", words)
