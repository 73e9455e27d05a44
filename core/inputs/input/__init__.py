"""The input detector ``input``: counts of features by cells, their comparison, and the detector itself."""
