"""Pool-based active learning: labels are bought one by one for known instances (`grove pool`)."""
