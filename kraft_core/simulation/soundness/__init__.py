"""Whether what captures are said to prove is true: executions whose truth is known, captured at will.

An execution is a list of moves of the protocol engine's replicas; captures are taken of any replicas at any
of its moments. The conclusions, findings, recovery and plans that production code derives from them are held
against what the execution knew. `python -m kraft_core.simulation --soundness RUNS` draws executions.
"""
