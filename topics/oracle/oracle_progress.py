"""Oracle progress: what an oracle has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OracleProgress:
    """Counts since the start of a run."""

    requests: int  # consumed
    answered: int  # records sent: correct, wrong and declined labels, or features
    wrong: int
    declined: int
    lost: int
    unknown: int  # ids without a row in the data set
    first_unknown: str | None
    unlabelled: int  # rows without a label in the data set
    malformed: int  # requests that could not be read
    waiting: int  # answers that are not due yet
    seconds: float
    features: int = 0  # values sent
    unavailable: int = 0  # features reported as unavailable
