"""Pool-based active learning: labels are bought one by one for known instances; what `grove pool` does."""
