"""A run's way through the worker: decode, task, effects, outbox."""

from __future__ import annotations
