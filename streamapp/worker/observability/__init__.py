"""Observability: metrics, health, logs, pages."""
