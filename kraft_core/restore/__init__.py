"""Restart a quorum that lost its majority: new controller directories from the content of captures.

request.py is the request. choice.py chooses the captured log that the metadata is taken from, and finds what
forbids that or may be lost by it. replay.py reads that log strictly, to its end or to an earlier moment, of
which earlier.py takes what a restart can use. later.py lists what was seen later, broker_dirs.py what brokers
have, and content.py what may be lost by it. horizon.py finds the offsets and epochs that the new log must
exceed; offline.py makes the state that Kafka can start from without its brokers; new_voters.py and
checkpoint.py write it as Kafka's snapshot. restoration.py combines them into a plan, and directories.py
writes the planned directories.
"""
