"""People: answers, agreement and quality of annotators, from the topic of audit entries alone."""
