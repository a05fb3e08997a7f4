"""The files on a controller's disk: directories, segments, checkpoints, batches, records and side files.

Readers turn bytes into values, or raise errors that state the position and the reason; writers are their
inverse. Layouts: Kafka's DefaultRecordBatch, MetadataRecordSerde, KafkaRaftLog.
"""
