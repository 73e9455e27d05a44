"""Pending: instances that wait for labels, labels that wait for instances, and the event time of both."""
