"""`grove demo`: the whole system on one machine, on a real data set, with a live table."""
