"""Exceptions of the offline state."""

from __future__ import annotations

from streamapp.errors import StreamappError


class OfflineError(StreamappError):
    """A state cannot be rebuilt; the text has the reason, and the states that can be."""
