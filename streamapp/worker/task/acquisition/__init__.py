"""Feature acquisition: opening episodes, requesting features, and answering at the end of an episode."""
