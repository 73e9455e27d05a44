"""Adaptive trees that differ from HAT in how their leaves split."""
