"""A cluster's facts, gathered from the tables and handed to kraft_core.evidence.

Facts are epoch ranges, control records, checkpoints and observations; their number grows with changes of the
quorum, not with the size of its log.
"""
