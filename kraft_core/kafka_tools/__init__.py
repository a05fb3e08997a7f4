"""What Kafka's own tools would have printed of a cluster, by its metadata at a moment.

Each tool prints what a node answers it. What only nodes know (configs in their files, high watermarks, how
far a follower is, who observes) is in no log, and never made up. kafka-features: messages/feature_tool.py.
"""
