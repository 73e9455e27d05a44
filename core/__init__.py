"""Learners on flat arrays: trees, drift detectors, query strategies, budgets; independent of Kafka."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Return ``core.Model``, imported on first use because it loads the compiler."""
    if name == "Model":
        return importlib.import_module("core.model.model").Model
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
