"""What lies on a controller's disk: directories, segments, checkpoints, batches, records and side files.

Readers take bytes and give values, or raise errors that name the position and the reason; writers are their
inverse. Layouts: Kafka's DefaultRecordBatch, MetadataRecordSerde, KafkaRaftLog.
"""
