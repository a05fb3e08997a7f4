"""Metadata records in, the cluster's metadata out, by Kafka's own replay rules (KIP-631)."""
