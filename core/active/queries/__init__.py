"""Query strategies: whether the label of an answered record is worth a request."""
