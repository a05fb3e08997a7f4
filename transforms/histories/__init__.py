"""Metadata records to versions of topics, partitions, brokers, configs and every other kind (SCD type 2).

kraft_core.image.history is the plain reference that every faster way must equal.
"""
