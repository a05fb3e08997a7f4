"""A quorum that lost its majority boots again: new controller directories from what the captures hold.

choice.py decides which captured log the metadata is taken from, and what forbids it or may be lost by it;
replay.py reads that log strictly; horizon.py finds what the new log must lie above; offline.py makes the
state that Kafka can start from without its brokers; checkpoint.py writes it as Kafka's snapshot.
restoration.py joins them to a plan, and directories.py writes what was planned.
"""
