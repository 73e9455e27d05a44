"""Measures per class: weighted sums over judged predictions, their figures and intervals."""
