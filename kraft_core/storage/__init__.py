"""What Kafka's kafka-storage does with a node's log directories: what it writes, prints and refuses.

The words are those of release 4.3 and, where they differ, of 4.4 (StorageTool, Formatter, KafkaConfig).
"""
