"""Records as columns: one compiled call decodes JSON of a known shape, one encodes answers."""
