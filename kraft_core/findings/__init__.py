"""KRaft's rules judged on captures, and what to do about a breach.

facts: what the rules read beside the evidence; finding: their result; judge: all of them over a cluster.
kraft_core.raft.rules leads from each rule to the function here that judges it. Pure: the result is the same
for any order of facts and captures.
"""
