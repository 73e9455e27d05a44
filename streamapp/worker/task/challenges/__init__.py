"""Challenges: a second model on a key answers and learns beside the first, until one of them is better."""
