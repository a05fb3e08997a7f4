"""What captures say against KRaft's rules, and what to do about it.

facts: what the rules read beside the evidence; finding: what they give; judge: all of them over a cluster.
Every rule is found by its number in judge. Pure: the same for any order of facts and captures.
"""
