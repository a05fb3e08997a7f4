"""Before a change to a quorum: what Kafka would answer, whether it commits, which voters it depends on.

The captures show where each replica stands (captured_quorum.py); the protocol engine computes what follows
(engine.py). If the states of the quorum that the captures allow lead to different answers, the answer is not
known.
"""
