"""Checks whether what Kraftlake derives from captures is true, on executions whose truth is known.

An execution is a list of moves of the protocol engine's replicas; captures are taken of any replicas at any
moment. The conclusions, findings, recovery advice and plans that production code derives from them are
compared with the execution. `python -m tests.soundness` draws executions.
"""
