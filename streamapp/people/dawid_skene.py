"""Annotator model of Dawid and Skene (1979), updated by each settled request in the order of the log.

Each annotator has a confusion matrix: expected counts of (true class, answered class) above a Dirichlet prior
for each true class. The mean of the prior is the annotator's accuracy over all classes, so that few answers
to many classes are enough; that accuracy has a prior above chance. The posterior of a request's class is

    p(t | answers) ∝ prior(t) · Π over annotators a of P(a answers l_a | t)

The prior of a request mixes the class shares that the tree gave in the request with the prevalence of the
classes. The weight of the tree is how much better than the commonest class it is, as in CROWDLAB (Goh et al.
2022, section 3): 1 - (1 - A_tree) / (1 - A_commonest). A is measured with posteriors that do not use the
tree: the tree learns from these labels and must not confirm itself. Their errors make the weight too small.

The expectation maximisation is incremental (Neal and Hinton 1998): a settled request adds its posterior to
the counts; then some of the last requests get new posteriors, which replace their old ones. Gold answers
are counts with a known class. There is no logarithm and no order of a set: equal logs give equal bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

CLASSES_MAX: Final = 32
ANNOTATORS_MAX: Final = 500
RECENT_MAX: Final = 256
"""Settled requests of a model whose posteriors are still revised."""
REVISED: Final = 8
"""Requests that get a new posterior after each settled request."""
STRENGTH: Final = 8.0
"""Answers that the prior of one true class is worth."""
OVERALL: Final = 2.0
"""Answers to each class that the prior of an annotator's accuracy over all classes is worth."""
EVEN: Final = 0.1
"""Part of the prior that all classes have alike. Without it a class that spammers prefer can take over: the
more often it is settled, the more the others' answers seem wrong.
"""
ACCURACY: Final = 0.7
"""Accuracy of an annotator who has not answered yet."""
TREE_MOST: Final = 0.9
"""Largest weight of the tree in the prior of a request."""

Row = list[float]


@dataclass(slots=True)
class Settled:
    """A settled request whose posterior may still be revised; classes by their index."""

    answers: dict[str, int]  # annotator → class
    shares: Row | None  # of the tree; None: it gave none
    posterior: Row


@dataclass(slots=True)
class AnnotatorModel:
    """The annotators of one model key."""

    classes: list[str] = field(default_factory=list)
    counts: dict[str, list[Row]] = field(default_factory=dict)
    """Annotator → expected answers by [true class][answered class]; who answered last comes last."""
    prevalence: Row = field(default_factory=list)  # expected records of each class
    tree_right: float = 0.0  # expected records of which the tree had the class
    tree_n: int = 0  # settled requests in which the tree gave shares
    recent: list[Settled] = field(default_factory=list)
    place: int = 0  # of the next request in `recent` that is revised

    # -- figures ------------------------------------------------------------------------------------------

    def has_room_for(self, classes: Iterable[str]) -> bool:
        """Whether the model has these classes or has room for them."""
        return len(self.classes) + len({*classes} - {*self.classes}) <= CLASSES_MAX

    def posterior(
        self, answers: Mapping[str, str | None], shares: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return the probability of each class after these answers; declined answers are no evidence.

        Classes that no settled request has had are classes of the result, too. `shares`: class shares of
        the tree in the request.
        """
        answered = {name: label for name, label in answers.items() if label is not None}
        if not {*answered.values(), *(shares or ())} <= {*self.classes}:
            return self._widened([*answered.values(), *(shares or ())]).posterior(answers, shares)
        indices = {name: self.classes.index(label) for name, label in answered.items()}
        result = self._posterior(indices, self._shares(shares))
        return dict(zip(self.classes, result, strict=True))

    def confusion(self, annotator: str) -> list[Row] | None:
        """Return P(answered class | true class) of an annotator, a row for each true class; None: unknown."""
        counts = self.counts.get(annotator)
        if counts is None:
            return None
        overall = _overall(counts)
        return [
            [self._likelihood(counts, overall, t, u) for u in range(len(row))] for t, row in enumerate(counts)
        ]

    def accuracy(self, annotator: str) -> float | None:
        """Return the probability that an annotator gives the true class; None: they are unknown."""
        confusion = self.confusion(annotator)
        if confusion is None:
            return None
        return sum(share * row[t] for t, (share, row) in enumerate(zip(self._base(), confusion, strict=True)))

    def tree_weight(self) -> float:
        """Return the weight of the tree's shares in the prior of a request."""
        right = (self.tree_right + 1.0) / (self.tree_n + 2.0)
        commonest = max(self._base(), default=1.0)
        return min(max(0.0, 1.0 - (1.0 - right) / max(1.0 - commonest, 1e-9)), TREE_MOST)

    # -- updates ------------------------------------------------------------------------------------------

    def settle(
        self, answers: Mapping[str, str | None], shares: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Learn from the answers to one request, and return its posterior before that.

        A request with more classes than there is room for is not learned, and has no posterior: {}.
        """
        answered = {name: label for name, label in sorted(answers.items()) if label is not None}
        if not self.has_room_for([*answered.values(), *(shares or ())]):
            return {}
        posterior = self.posterior(answered, shares)
        if not answered:
            return posterior
        self._widen([*answered.values(), *(shares or ())])
        indices = {name: self.classes.index(label) for name, label in answered.items()}
        settled = Settled(indices, self._shares(shares), [posterior[name] for name in self.classes])
        if settled.shares is not None:
            without = self._posterior(indices, None)
            self.tree_right += without[settled.shares.index(max(settled.shares))]
            self.tree_n += 1
        self._touch(indices)
        self._add(settled, settled.posterior)
        self._remember(settled)
        for _ in range(min(REVISED, len(self.recent))):
            self._revise(self.recent[self.place])
            self.place = (self.place + 1) % len(self.recent)
        return posterior

    def learn_gold(self, annotator: str, gold: str, label: str | None) -> None:
        """Learn from the answer to a gold question, whose class is known."""
        if label is None or not self.has_room_for([gold, label]):
            return
        self._widen([gold, label])
        self._touch([annotator])
        self.counts[annotator][self.classes.index(gold)][self.classes.index(label)] += 1.0

    def _add(self, settled: Settled, change: Row) -> None:
        for t, amount in enumerate(change):
            self.prevalence[t] = max(0.0, self.prevalence[t] + amount)
            for annotator, label in settled.answers.items():
                counts = self.counts.get(annotator)
                if counts is not None:
                    counts[t][label] = max(0.0, counts[t][label] + amount)

    def _revise(self, settled: Settled) -> None:
        posterior = self._posterior(settled.answers, settled.shares)
        self._add(settled, [new - old for new, old in zip(posterior, settled.posterior, strict=True)])
        settled.posterior = posterior

    def _remember(self, settled: Settled) -> None:
        """Put the request in the place of the oldest one: the places are filled in turns."""
        self.recent.append(settled)
        if len(self.recent) > RECENT_MAX:
            del self.recent[0]
            self.place = max(0, self.place - 1)

    def _touch(self, annotators: Iterable[str]) -> None:
        """Make the annotators the last of all; those who have not answered for longest make room."""
        for annotator in annotators:
            empty = [[0.0] * len(self.classes) for _ in self.classes]
            self.counts[annotator] = self.counts.pop(annotator, empty)
        while len(self.counts) > ANNOTATORS_MAX:
            del self.counts[next(iter(self.counts))]

    # -- classes ------------------------------------------------------------------------------------------

    def _widen(self, classes: Sequence[str]) -> None:
        new = [name for name in dict.fromkeys(classes) if name not in self.classes]
        self.classes += new
        zeros = [0.0] * len(new)
        self.prevalence += zeros
        for counts in self.counts.values():
            for row in counts:
                row += zeros
            counts += [[0.0] * len(self.classes) for _ in new]
        for settled in self.recent:
            settled.posterior += zeros
            if settled.shares is not None:
                settled.shares += zeros

    def _widened(self, classes: Sequence[str]) -> AnnotatorModel:
        """Return a copy with further classes, for a question."""
        copy = AnnotatorModel(
            [*self.classes],
            {name: [[*row] for row in rows] for name, rows in self.counts.items()},
            [*self.prevalence],
            self.tree_right,
            self.tree_n,
        )
        copy._widen(classes)
        return copy

    # -- probabilities ------------------------------------------------------------------------------------

    def _base(self) -> Row:
        """Return the prevalence of the classes, with one record of each class added, and the even part."""
        total = sum(self.prevalence) + len(self.classes)
        return [EVEN / len(self.classes) + (1.0 - EVEN) * (n + 1.0) / total for n in self.prevalence]

    def _shares(self, shares: Mapping[str, float] | None) -> Row | None:
        """Return the shares of the tree by class; None if there are none."""
        row = [max(0.0, shares.get(name, 0.0)) for name in self.classes] if shares else []
        total = sum(row)
        return [share / total for share in row] if total > 0.0 else None

    def _posterior(self, answers: Mapping[str, int], shares: Row | None) -> Row:
        result = self._base()
        if shares is not None:
            weight = self.tree_weight()
            result = [
                weight * share + (1.0 - weight) * base for share, base in zip(shares, result, strict=True)
            ]
        for annotator, label in sorted(answers.items()):
            counts = self.counts.get(annotator, [])
            overall = _overall(counts)
            result = [p * self._likelihood(counts, overall, t, label) for t, p in enumerate(result)]
            total = sum(result)
            result = [p / total for p in result]
        return result

    def _likelihood(self, counts: list[Row], overall: float, t: int, label: int) -> float:
        """Return P(the annotator answers `label` | the class is `t`).

        counts: of the annotator, [] if they are unknown; overall: their accuracy over all classes.
        """
        n_classes = len(self.classes)
        if n_classes == 1:
            return 1.0
        share = overall if t == label else (1.0 - overall) / (n_classes - 1)
        if not counts:
            return share
        return (counts[t][label] + STRENGTH * share) / (sum(counts[t]) + STRENGTH)


def _overall(counts: list[Row]) -> float:
    """Return the mean of an annotator's accuracies by class: all classes count alike, rare ones too."""
    shares = [(row[t] + OVERALL * ACCURACY) / (sum(row) + OVERALL) for t, row in enumerate(counts)]
    return sum(shares) / len(shares) if shares else ACCURACY


def written(model: AnnotatorModel) -> dict[str, Any]:
    """Return the state of a model as JSON can hold it, to the bit."""
    return {
        "classes": model.classes,
        "counts": list(model.counts.items()),
        "prevalence": model.prevalence,
        "tree": [model.tree_right, model.tree_n],
        "recent": [[settled.answers, settled.shares, settled.posterior] for settled in model.recent],
        "place": model.place,
    }


def read(state: Mapping[str, Any]) -> AnnotatorModel:
    """Return the model that `written` described."""
    right, n = state["tree"]
    recent = [Settled(*settled) for settled in state["recent"]]
    counts = dict(state["counts"])
    return AnnotatorModel(state["classes"], counts, state["prevalence"], right, n, recent, state["place"])
