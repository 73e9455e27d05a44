"""Tree learners: each composes an observer, a criterion, a bound, a schedule and a leaf model."""
