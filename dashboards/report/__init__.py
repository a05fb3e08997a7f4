"""The page: one HTML file that tells what the lake knows of its clusters.

queries ask Spark for few, aggregated rows; fleet, lanes, bounds and state turn rows into values; the draw_*
and *_view modules turn values into HTML; page puts it all into one file. Only queries and write know Spark.
"""
