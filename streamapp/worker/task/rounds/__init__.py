"""Rounds: small runs of several tasks, answered together; each task ends as if its run had come alone."""
