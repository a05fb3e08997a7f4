"""Bytes in, values out: Kafka's metadata log read, checked and replayed. Knows nothing of Spark."""
