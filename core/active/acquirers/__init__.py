"""Acquirers: which features of a record are worth their price before it is answered."""
