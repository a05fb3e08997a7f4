"""The cluster's metadata, replayed from metadata records by Kafka's rules (KIP-631)."""
