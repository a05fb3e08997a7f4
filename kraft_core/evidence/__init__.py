"""What a cluster's captures prove: commit status, voter sets, epochs, bounds of the high watermark.

Pure: facts in (facts.py), rows out (rows.py), by derive(). The result is a function of the set of captures:
their order and duplicates change nothing. What is not proven is undecided.
"""
