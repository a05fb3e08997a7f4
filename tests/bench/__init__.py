"""`make bench`: how fast and how large, as ratios of two things measured in the same run.

A module of this package with a function `rows` is a group of the table; its name, with - for _, selects it.
"""
