"""Query strategies against random requests: paired runs, standard errors, and a protocol that can fail."""
