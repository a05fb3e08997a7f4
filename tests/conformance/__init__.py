"""The engine held against traces of Kafka's own raft classes, step by step.

`python -m tests.conformance DIR` compares every trace file in DIR and exits 1 on a mismatch. Nothing is
skipped silently: each step is compared, or counted under the name of the reason why it cannot be.
"""
