"""Challenge: a challenger's terms, and how it has compared with its champion so far; immutable.

A challenger is a model of the same key in a slot of its own. Its key leads to the champion, so that no record
reaches it by itself: it answers and learns what the champion does (challenges/). It requests no labels and
has no evaluations; ``terms.spec`` is the spec that it gets when it is promoted.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.active.queries.never import Plugin as Never
from core.layout.challenge_counts import CHALLENGE_WORDS, OPEN, ChallengeCounts
from core.measures.challenge_bounds import Comparison, Rules, problem, read
from core.measures.challenged_rows import MOST, Purse
from core.spec import EvaluationPlan, Spec

Ints64 = npt.NDArray[np.int64]
Judge = Literal["rule", "person"]

JUDGES: Final[tuple[Judge, ...]] = ("rule", "person")
SHARE: Final = 0.5
"""Share of the requests that the strategy gives up at most."""
WARM_UP: Final = 200
"""Labels that a challenger learns before it is compared: its champion has learned many."""
WORDS: Final = Purse.SIZE + CHALLENGE_WORDS
REPORTED: Final = -1
"""In the place of the step of a decision: it was reported to the person who decides."""


class Terms(NamedTuple):
    """What a `challenge` command states."""

    spec: Spec
    share: float = SHARE
    decide: Judge = "rule"
    rules: Rules = Rules()
    warm_up: int = WARM_UP


class Challenge(NamedTuple):
    """The terms and the state of one challenge."""

    terms: Terms
    since: int  # serial of the first pending instance that both may have answered
    was_open: bool  # the champion added new features before
    words: bytes = bytes(8 * WORDS)  # purse and counts
    decided_at: int | None = None  # step of event time of the decision by the rule; -1: it was reported

    @property
    def counts(self) -> ChallengeCounts:
        """The counts, to be read."""
        return ChallengeCounts.over(np.frombuffer(self.words, np.int64)[Purse.SIZE :])

    @property
    def credits(self) -> int:
        """Requests that the strategy gave up, and in whose place no other has been made."""
        return int(Purse.over(np.frombuffer(self.words, np.int64)).credits)

    @property
    def is_open(self) -> bool:
        """Whether the rule has not decided yet."""
        return int(self.counts.decision) == OPEN

    @property
    def is_decided(self) -> bool:
        """Whether the rule has decided, and this is neither carried out nor reported yet."""
        return self.decided_at not in (None, REPORTED)

    def mutable(self) -> Ints64:
        """Return a copy of the words."""
        return np.frombuffer(self.words, np.int64).copy()

    def compared(self) -> Comparison:
        """Return the figures."""
        return read(np.frombuffer(self.words, np.int64)[Purse.SIZE :].copy(), self.terms.rules)

    def summary(self) -> dict[str, Any]:
        """Return the figures and terms for people and programs; NaN as None."""
        figures = self.compared().to_dict()
        figures = {name: None if value != value else value for name, value in figures.items()}
        return {
            "learner": self.terms.spec.learner.spelled,
            **figures,
            "share": self.terms.share,
            "decide": self.terms.decide,
            "warm_up": self.terms.warm_up,
            **self.terms.rules._asdict(),
        }

    def to_facts(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "spec": self.terms.spec.to_dict(),
            "state_version": self.terms.spec.state_version,
            "share": self.terms.share,
            "decide": self.terms.decide,
            "rules": self.terms.rules._asdict(),
            "warm_up": self.terms.warm_up,
            "since": self.since,
            "was_open": self.was_open,
            "words": np.frombuffer(self.words, np.int64).tolist(),
            "decided_at": self.decided_at,
        }

    @staticmethod
    def of_facts(facts: dict[str, Any]) -> Challenge:
        """Return the challenge of its JSON; GroveError, LookupError, TypeError or ValueError if damaged."""
        spec = Spec.parse(dict(facts["spec"]), int(facts["state_version"]))
        rules = Rules(**facts["rules"])
        rules.check()
        words = np.array(facts["words"], dtype=np.int64)
        flaw = problem(words[Purse.SIZE :])
        if flaw:
            raise ValueError(flaw)
        purse = Purse.over(words)
        if not 0 <= purse.credits <= min(purse.exchanged, MOST):
            message = f"credits={purse.credits} must be from 0 to {MOST} and at most the requests given up"
            raise ValueError(message)
        if facts["decide"] not in JUDGES or not 0.0 < float(facts["share"]) < 1.0:
            message = f"decide={facts['decide']!r}, share={facts['share']!r}"
            raise ValueError(message)
        decided_at = facts["decided_at"]
        challenge = Challenge(
            Terms(spec, float(facts["share"]), facts["decide"], rules, int(facts["warm_up"])),
            int(facts["since"]),
            bool(facts["was_open"]),
            words.tobytes(),
            None if decided_at is None else int(decided_at),
        )
        if challenge.is_open != (decided_at is None):
            message = f"decided_at={decided_at} must be given with a decision, and only then"
            raise ValueError(message)
        return challenge


def running(spec: Spec) -> Spec:
    """Return the spec of a challenger while it is compared: it neither requests labels nor is evaluated."""
    evaluation: EvaluationPlan = dataclasses.replace(spec.evaluation, every=0, share=0.0)
    return dataclasses.replace(spec, query=Never(), evaluation=evaluation, explain=False)
