"""Folders for files that the benchmarks fetched and compiled."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Return the benchmarks' folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamgrove" / "benchmarks"
