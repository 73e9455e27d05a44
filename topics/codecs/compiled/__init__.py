"""Records as columns: JSON of a known shape is decoded, answers are encoded, in one compiled call each."""
