"""Readers by schema: from a registered schema to the columns of its values."""
