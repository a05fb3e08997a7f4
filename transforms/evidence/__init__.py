"""A cluster's facts, read from the lake's tables for kraft_core.evidence and kraft_core.findings.

Facts are epoch ranges, control records, checkpoints and observations; their number grows with changes of the
quorum, not with the size of its log. They are read with Arrow, in one scan of a table for a group of
clusters: by the driver if all clusters fit in one group, else by Spark's tasks, one group each.
"""
