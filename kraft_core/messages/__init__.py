"""Declarations of Kafka's messages: names, types, versions, tags, nullability, defaults."""
