"""A quorum that lost its majority boots again: new controller directories from what the captures hold.

request.py is what is asked for. choice.py decides which captured log the metadata is taken from, and what
forbids it or may be lost by it; replay.py reads that log strictly, to its end or to an earlier moment, of
which earlier.py takes what a restart can use; later.py names what was seen later, broker_dirs.py what
brokers know, and content.py what may be lost by it. horizon.py finds what the new log must lie above;
offline.py makes the state that Kafka can start from without its brokers; new_voters.py and checkpoint.py
write it as Kafka's snapshot. restoration.py joins them to a plan, and directories.py writes what was
planned.
"""
