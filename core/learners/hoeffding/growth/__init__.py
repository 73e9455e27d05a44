"""Growth: what changes a model's trees (splits, revisions, drift reactions), and the events of it."""
