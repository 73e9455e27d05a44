"""Arithmetic with the same result on every machine: functions, MOA's rounding, random numbers."""
