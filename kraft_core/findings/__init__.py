"""KRaft's rules checked on captures, and what to do about a violation.

facts: what the rules read beside the evidence; finding: their result; judge: all of them over a cluster.
kraft_core.raft.rules links each rule to the function here that checks it. Pure: the result does not depend on
the order of facts and captures.
"""
