"""Split criteria: how impure a distribution of classes is."""
