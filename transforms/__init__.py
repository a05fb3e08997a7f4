"""DataFrame in, DataFrame out: the tables of the lake and what is derived from them."""
