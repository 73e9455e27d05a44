"""Effects: what a run leads to (answers, label requests, refusals, model events, notices)."""
