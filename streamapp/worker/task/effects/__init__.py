"""Effects of a run: answers, label requests, refusals, model events, notices."""
