"""Positions, of which a test says only what matters to it: ``at(instances=7)``."""

from __future__ import annotations

from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.task.sources import SOURCES, Positions, positions_of


def at(**known: int) -> Positions:
    """Return positions; the sources that are not named are at their beginning."""
    return positions_of(known)


def committed(**known: int) -> Committed:
    """Return what a group has committed; of the sources that are not named, nothing."""
    return {source: known.get(source) for source in SOURCES}
