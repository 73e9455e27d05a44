"""Tree: the drawing of a decision tree that a person folds, searches and zooms."""
