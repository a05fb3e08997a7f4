"""KRaft's rules as values: no I/O, no clock, no Spark. State and operation in, new state out.

Sources: KIP-595 (log, epochs, high watermark), KIP-630 (snapshots), KIP-853 (voter sets), and what Kafka's
own raft classes do where the text leaves it open; tests/conformance compares with them step by step.
"""
