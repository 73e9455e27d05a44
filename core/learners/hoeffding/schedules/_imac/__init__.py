"""IMAC's schedule: the candidates that it watches at leaves and at inner nodes."""
