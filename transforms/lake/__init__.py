"""The lake: its tables declared once, its folder, and how rows get in and out.

Everything that touches a lake's files or Delta logs goes through this wing; the other wings name tables and
rows. delta-rs reads and writes small tables and commits the files that Spark's tasks write.
"""
