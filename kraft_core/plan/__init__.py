"""Before a change to a quorum: what Kafka would answer, whether it commits, which voters it depends on.

The captures show the state of each replica (captured_quorum.py); the protocol engine computes what follows
(engine.py). If several states of the quorum are consistent with the captures and lead to different answers,
the answer is NOT KNOWN.
"""
