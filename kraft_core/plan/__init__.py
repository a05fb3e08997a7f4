"""Before acting on a quorum: what Kafka would answer, whether the change commits, on whom commits would hang.

The captures say where each replica stands (standing.py); the protocol engine is asked what follows
(engine.py); what several states of the quorum explain differently is not known from these captures.
"""
