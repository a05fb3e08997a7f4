"""The cluster's metadata, replayed from metadata records by Kafka's own rules (KIP-631)."""
