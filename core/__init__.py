"""Learning on arrays: trees, drift detectors, query strategies, budgets. Knows nothing of Kafka."""
