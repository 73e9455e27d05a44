"""People figures: figures of the people store for pages, read at most once in some seconds for all pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from streamapp.people import annotator_statistics, answer_overlap
from streamapp.people.annotator_statistics import Figures, day_of
from streamapp.people.answer_overlap import ModelAgreement, PairAgreement
from streamapp.people.pauses import PAUSE, RESUME, Pause
from streamapp.people.people_store import PeopleStore
from streamapp.web.audit_log import AuditLog
from streamapp.web.people.audit_reader import after

_T = TypeVar("_T")
FRESH_MS: Final = 5_000
MODELS_MAX: Final = 50
PAIRS_MAX: Final = 200
DAYS: Final = {"today": 1, "7 days": 7, "30 days": 30}
"""Periods that the page offers, in UTC days that end today."""


@dataclass
class PeopleFigures:
    """The figures of everybody; any thread may call."""

    people: PeopleStore
    audit: AuditLog
    leaderboard: bool = False  # annotators see everybody's number of answers
    has_rule: bool = False  # a rule pauses people
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[tuple[Any, ...], tuple[int, Any]] = field(default_factory=dict)

    def everybody(self, days: int, now: int) -> list[Figures]:
        """Return the figures of each person for the last days together, today included."""
        today = day_of(now)

        def read() -> list[Figures]:
            with self.people.reading() as db:
                return annotator_statistics.by_annotator(db, today - days + 1, today)

        return self._fresh(("everybody", days, today), now, read)

    def person(self, annotator: str, days: int, now: int) -> list[Figures]:
        """Return the figures of a person for each day, the newest first."""
        today = day_of(now)
        with self.people.reading() as db:
            return annotator_statistics.by_day(db, today - days + 1, today, annotator)[::-1]

    def models(self, now: int) -> list[ModelAgreement]:
        """Return the agreement by model."""

        def read() -> list[ModelAgreement]:
            with self.people.reading() as db:
                return answer_overlap.agreement_of_models(db, MODELS_MAX)

        return self._fresh(("models",), now, read)

    def classes(self, key: str) -> list[ModelAgreement]:
        """Return the agreement on each class of a model."""
        with self.people.reading() as db:
            return answer_overlap.agreement_of_classes(db, key)

    def pairs(self, *, key: str | None = None, annotator: str | None = None) -> list[PairAgreement]:
        """Return the agreement of pairs, of a model or of a person."""
        with self.people.reading() as db:
            return answer_overlap.agreement_of_pairs(db, PAIRS_MAX, key=key, annotator=annotator)

    def pause_of(self, annotator: str) -> Pause | None:
        """Return the pause of a person; None: they get cards."""
        state = self.people.pause_states.get(annotator)
        return state if state is not None and state.is_paused else None

    def paused(self) -> list[Pause]:
        """Return everybody who is paused, by name."""
        return [state for state in self.people.pause_states.values() if state.is_paused]

    def why_paused(self, annotator: str) -> str:
        """Return why a person gets no cards for now, and what can be done; "": they get cards."""
        pause = self.pause_of(annotator)
        if pause is None:
            return ""
        return f"You get no cards for now: {pause.reason}. Operators can resume you on the page People."

    def note(self, annotator: str, operator: str, *, pause: bool, reason: str, now: int) -> None:
        """Note that an operator pauses or resumes a person; it has its effect when the topic has it."""
        action = PAUSE if pause else RESUME
        self.audit.note_about(annotator, operator, action, after(self.people, annotator, now), reason)

    def _fresh(self, name: tuple[Any, ...], now: int, read: Callable[[], _T]) -> _T:
        with self._turn:
            at_ms, kept = self._kept.get(name, (now - FRESH_MS, None))
            if now - at_ms >= FRESH_MS:
                self._kept = {
                    other: value for other, value in self._kept.items() if now - value[0] < FRESH_MS
                }
                kept = read()
                self._kept[name] = (now, kept)
            value: _T = kept
            return value
