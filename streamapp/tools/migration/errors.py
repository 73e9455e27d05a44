"""Exceptions of a migration."""

from __future__ import annotations

from streamapp.errors import StreamappError


class MigrationError(StreamappError):
    """A migration may not begin, or did not end well; the text has the remedy."""
