"""The lake: its tables declared once, its folder, and how rows get in and out.

Only the package storage touches a lake's files and opens its Delta logs; the other wings work with tables and
rows. delta-rs reads and writes small tables and commits the files that Spark's tasks write.
"""
