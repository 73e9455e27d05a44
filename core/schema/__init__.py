"""Schema: attributes, classes, the codes of their values, and the memory that models share."""
