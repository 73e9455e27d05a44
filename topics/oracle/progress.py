"""Oracle progress: what an oracle has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OracleProgress:
    """Counts since the start of a run."""

    requests: int  # consumed
    answered: int  # records sent: right, wrong and declined, or with features
    wrong: int
    declined: int
    lost: int
    unknown: int  # ids that are no row of the data set
    first_unknown: str | None
    unlabelled: int  # rows that have no label in the data set
    malformed: int  # requests that could not be read
    waiting: int  # answers that are not due yet
    seconds: float
    features: int = 0  # values sent
    unavailable: int = 0  # features that were said not to be had
