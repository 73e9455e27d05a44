"""`grove demo`: the whole system on one machine, on a stream of its own or a data set, with a live table."""
