"""Experiments of De Rosa and Cesa-Bianchi on confidence decision trees."""
