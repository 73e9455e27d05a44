"""The label queue: requests, leases, answers, agreement, and their way to Kafka and back."""
