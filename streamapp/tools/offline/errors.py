"""Exceptions of the offline state."""

from __future__ import annotations

from streamapp.errors import StreamappError


class OfflineError(StreamappError):
    """A state that cannot be had; says why, and where it can be had."""
