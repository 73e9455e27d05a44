"""Schemas: feature names, values and classes of records in the schemas of models."""
