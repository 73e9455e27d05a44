"""Query strategies: whether the label of an answered record is worth asking for."""
