"""Calculation steps of a derivation: lines that a reader can check with a pocket calculator."""

from __future__ import annotations

DIGITS = 5


def number(value: float) -> str:
    """Return a number with five significant digits, without exponent and without zeros at the end.

    >>> number(1234567.0), number(0.000123456), number(20.0)
    ('1,234,600', '0.00012346', '20')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS - 1}e}")
    text = f"{rounded:,.12f}".rstrip("0").rstrip(".")
    return text or "0"


def step(label: str, expression: str, value: float, unit: str) -> str:
    """Return one line: the label, the expression with its numbers, the value with its unit."""
    return f"{label}: {expression} = {number(value)} {unit}"
