"""Kafka's messages declared as facts: names, types, versions, tags, nullability, defaults."""
