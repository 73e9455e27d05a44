"""People: the topic of audit entries, read for the commands of `grove people`."""
