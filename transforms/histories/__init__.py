"""Metadata records to versions of topics, partitions, brokers, configs and every other kind (SCD type 2).

A replay plan, Arrow scans of the lake, and two passes over them: partitions by columns, all other kinds by
kraft_core.image.history, the reference that both must equal. The driver runs them if they take about a
second; larger work goes to Spark's tasks, which take whole clusters and run the same functions.
"""
