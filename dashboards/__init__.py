"""SQL views and functions over the lake, and the HTML report."""
