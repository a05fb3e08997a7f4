"""The report: one HTML file about the clusters of a lake.

queries and history_queries read a few aggregated rows through delta-rs; lanes, bounds and state turn rows
into values; the draw_* and *_view modules turn values into HTML; page puts it all into one file.
"""
