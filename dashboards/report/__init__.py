"""The page: one HTML file that tells what the lake knows of its clusters.

queries and history_queries ask the tables by delta-rs for few, aggregated rows; lanes, bounds and state turn
rows into values; the draw_* and *_view modules turn values into HTML; page puts it all into one file.
"""
