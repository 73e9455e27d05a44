"""Settlement: the label of a request from the answers of several annotators, and whether it is sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from streamapp.people.dawid_skene import AnnotatorModel

Weighting = Literal["majority", "share", "quality"]
"""How several answers are settled: by the majority with weight 1, by the majority with its share as the
weight, or by the annotator model with the posterior as the weight.
"""


class Settlement(NamedTuple):
    """The label of a request, as it is sent."""

    label: str | None  # None: declined
    weight: float
    is_sure: bool  # False: one more answer could help
    posterior: float | None = None  # of the label, by the annotator model; None: it has no figure


def settlement(
    answers: Mapping[str, str | None],
    weighting: Weighting,
    model: AnnotatorModel,
    prior: Mapping[str, float] | None = None,
    sure_posterior: float = 0.9,
) -> Settlement:
    """Return the label of these answers (annotator → class; None: not known).

    A tie of the majority is declined and not sure. By quality the label is sure from `sure_posterior` on,
    and declined if more than half of the answers are "not known". prior: class shares of the tree in the
    request. If there are more classes than the annotator model holds, the majority decides.
    """
    (label, most), *others = Counter(answers.values()).most_common(2)
    is_tie = bool(others) and others[0][1] == most
    if is_tie:
        label = None
    probabilities = _probabilities(answers, model, prior)
    if weighting != "quality" or not probabilities:
        weight = most / len(answers) if weighting != "majority" and label is not None else 1.0
        return Settlement(label, weight, not is_tie, probabilities.get(label) if label is not None else None)
    if 2 * sum(answer is None for answer in answers.values()) > len(answers):
        return Settlement(None, 1.0, is_sure=True)
    best = max(sorted(probabilities), key=lambda name: probabilities[name])
    posterior = probabilities[best]
    return Settlement(best, posterior, posterior >= sure_posterior, posterior)


def _probabilities(
    answers: Mapping[str, str | None], model: AnnotatorModel, prior: Mapping[str, float] | None
) -> dict[str, float]:
    """Return the posterior of each class; empty if no answer is a class, or there are too many classes."""
    classes = [label for label in answers.values() if label is not None]
    if not classes or not model.has_room_for([*classes, *(prior or ())]):
        return {}
    return model.posterior(answers, prior)
