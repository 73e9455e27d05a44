"""Growth: changes of a model's trees (splits, revisions, drift reactions), and their events."""
