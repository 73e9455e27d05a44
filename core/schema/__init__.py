"""Schema: attributes, classes, the codes of their values, and what models share of them."""
