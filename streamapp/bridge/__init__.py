"""Bridges to label tools: requests go out as tasks, annotations come back as labels."""
