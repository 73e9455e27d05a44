"""A challenger compared with its champion: labels to the decision, and how often decisions are wrong."""
