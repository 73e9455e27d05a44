"""Hypotheses: strings of outcomes of all features, enumerated or sampled, with weights and decision regions.

They are no state: they follow from an episode's theta and number, and are made in the workspace of a call.

    HypothesisSpace | outcomes [feature, hypothesis] | region | surviving hypotheses | hash table
    | P(outcome | class) [class, outcome of any feature] | posterior of classes | weights
    | masses [outcome, class] | two rows of classes | utilities [feature]
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, start_of, tail
from core.kernels.records import Record, word, words_after
from core.layout.plan import PlanRecord
from core.learners.ufodt.features import feature_of
from core.learners.ufodt.words import Episode, mean_share_of, parameters_of, share_of
from core.numeric import rng

ENUMERATED: Final = 4096
"""Strings that are always enumerated, for any number of samples: all strings of twelve bits."""
ATTEMPTS: Final = 64
"""Maximum of samples, as a multiple of the hypotheses to be found [D43]."""
PLAIN: Final = 100
"""Features up to which weights are plain products; with more features, each factor is scaled by the largest
of its feature, against underflow.
"""


class HypothesisSpace(Record):
    """The hypotheses of an episode; positions are relative to the record."""

    words: int = word("words of the workspace")
    count: int = word("hypotheses")
    alive: int = word("surviving hypotheses")
    room: int = word("hypotheses to be found; there is room for as many")
    is_all: int = word("1: all hypotheses are enumerated")
    entries: int = word("entries of the hash table, a power of two")
    width: int = word("outcomes of all features")
    region_at: int = word("position: decision regions")
    survivor_at: int = word("position: surviving hypotheses")
    table_at: int = word("position: hash table")
    share_at: int = word("position: P(outcome | class)")
    posterior_at: int = word("position: posterior of classes")
    weight_at: int = word("position: weights")
    mass_at: int = word("position: masses")
    row_at: int = word("position: two rows of classes")
    utility_at: int = word("position: utilities")
    strings: Any = words_after(int, "outcomes [feature, hypothesis]")

    @property
    def regions(self) -> Any:
        """The decision region of each hypothesis, int64[hypothesis]."""
        return tail(self.ints, self.start + self.region_at)

    @property
    def survivors(self) -> Any:
        """The numbers of the surviving hypotheses, int64[alive]."""
        return tail(self.ints, self.start + self.survivor_at)

    @property
    def table(self) -> Any:
        """The hash table of sampled strings: numbers of hypotheses, -1: empty, int64[entries]."""
        return tail(self.ints, self.start + self.table_at)

    @property
    def shares(self) -> Any:
        """P(outcome | class) of hypotheses, float64[class, width]."""
        return tail(self.floats, self.start + self.share_at)

    @property
    def posterior(self) -> Any:
        """The posterior of the classes, float64[class]."""
        return tail(self.floats, self.start + self.posterior_at)

    @property
    def weights(self) -> Any:
        """The weight of each hypothesis, float64[hypothesis]."""
        return tail(self.floats, self.start + self.weight_at)

    @property
    def masses(self) -> Any:
        """The masses of the survivors for each outcome of one feature, float64[outcome, class]."""
        return tail(self.floats, self.start + self.mass_at)

    @property
    def rows(self) -> Any:
        """The masses of the regions, then a row of work, float64[2, class]."""
        return tail(self.floats, self.start + self.row_at)

    @property
    def utilities(self) -> Any:
        """The utility of each feature, -1: no candidate, float64[attribute]."""
        return tail(self.floats, self.start + self.utility_at)


HEADER: Final = HypothesisSpace.SIZE


@kernel
def space_in(words) -> HypothesisSpace:
    """Return the hypotheses in a workspace, int64[n], which must outlive them."""
    return HypothesisSpace(start_of(words), start_of(words.view(np.float64)), 0)


@kernel
def workspace(plan: PlanRecord, episode: Episode) -> Any:
    """Return the workspace of an episode, int64[n]: the header is written, all else is not."""
    head = np.zeros(HEADER, dtype=np.int64)
    words = np.empty(lay_out(plan, episode, space_in(head)), dtype=np.int64)
    words[:HEADER] = head
    return words


@kernel
def lay_out(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> int:
    """Write the room for hypotheses, and where the parts of the workspace lie; return its size in words."""
    p, n, m = parameters_of(plan), plan.attributes, max(episode.classes, 1)
    samples = int(p.hypotheses)
    strings, most = 1, 1
    for column in range(n):
        outcomes = max(episode.outcomes(plan)[column], 1)
        most = max(most, outcomes)
        strings = min(strings * outcomes, 1 << 40)
    enumerates = p.enumerate != 0.0 and strings <= max(samples, ENUMERATED)
    space.is_all = 1 if enumerates else 0
    space.room = strings if enumerates else samples
    room = space.room
    entries = 1
    while entries < 2 * room:
        entries *= 2
    space.entries = entries
    space.count, space.alive = 0, 0
    space.width = plan.values + 2 * plan.numeric
    space.region_at = HEADER + n * room
    space.survivor_at = space.region_at + room
    space.table_at = space.survivor_at + room
    space.share_at = space.table_at + entries
    space.posterior_at = space.share_at + m * space.width
    space.weight_at = space.posterior_at + m
    space.mass_at = space.weight_at + room
    space.row_at = space.mass_at + most * m
    space.utility_at = space.row_at + 2 * m
    space.words = space.utility_at + n
    return space.words


@kernel
def write_shares(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Write P(outcome | class) of hypotheses."""
    shares = space.shares
    for column in range(plan.attributes):
        first = feature_of(plan, column).first_outcome
        for c in range(episode.classes):
            for v in range(episode.outcomes(plan)[column]):
                shares[c * space.width + first + v] = mean_share_of(plan, episode, c, column, v)


@kernel
def write_all(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Write every string, the first feature changing last."""
    n, room, strings = plan.attributes, space.room, space.strings
    for h in range(room):
        rest = h
        for back in range(n):
            column = n - 1 - back
            outcomes = max(episode.outcomes(plan)[column], 1)
            strings[column * room + h] = rest % outcomes
            rest //= outcomes
    space.count = room


@kernel
def is_new(plan: PlanRecord, space: HypothesisSpace, h: int) -> bool:
    """Return whether string h differs from all strings before it, and enter it into the hash table."""
    room, mask, strings, table = space.room, space.entries - 1, space.strings, space.table
    code = 0
    for column in range(plan.attributes):
        code = (code * 31 + strings[column * room + h] + 1) & 0xFFFFFFFFFF
    entry = (code ^ (code >> 20)) & mask
    while table[entry] >= 0:
        other = table[entry]
        same = True
        for column in range(plan.attributes):
            if strings[column * room + other] != strings[column * room + h]:
                same = False
                break
        if same:
            return False
        entry = (entry + 1) & mask
    table[entry] = h
    return True


@kernel
def draw_some(plan, episode: Episode, space: HypothesisSpace) -> None:
    """Sample distinct strings (Algorithm 4): a class by the prior, then each outcome given the class.

    A string that is already there is sampled again for the same class, as in the authors' code: each class
    gets its share of the strings, even if new strings are rare.
    """
    n, m, room, most = plan.attributes, episode.classes, space.room, 1
    shares, table, prior = space.shares, space.table, episode.prior(plan)
    for column in range(n):
        most = min(most * max(episode.outcomes(plan)[column], 1), room)
    key = rng.bits(plan.hypothesis_key, episode.number)
    for entry in range(space.entries):
        table[entry] = -1
    h, c, is_drawn = 0, 0, False
    for attempt in range(ATTEMPTS * room):
        draw = attempt * (n + 1)
        if not is_drawn:
            u, c = rng.uniform(key, draw), 0
            while c < m - 1 and u >= prior[c]:
                u -= prior[c]
                c += 1
            is_drawn = True
        for column in range(n):
            first = c * space.width + feature_of(plan, column).first_outcome
            last = episode.outcomes(plan)[column] - 1
            u, v = rng.uniform(key, draw + 1 + column), 0
            while v < last and u >= shares[first + v]:
                u -= shares[first + v]
                v += 1
            space.strings[column * room + h] = v
        if is_new(plan, space, h):
            h += 1
            is_drawn = False
            if h == most:  # enough, or all there are
                break
    space.count = h


@kernel
def weigh(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Write w = Σ P(y)·P(h | y) of each hypothesis and its decision region, argmax P(y)·P(h | y)."""
    n, m, room, width = plan.attributes, episode.classes, space.room, space.width
    shares, strings, prior = space.shares, space.strings, episode.prior(plan)
    weights, regions, survivors = space.weights, space.regions, space.survivors
    for h in range(space.count):
        total, best, region = 0.0, -1.0, 0
        for c in range(m):
            product = prior[c]
            for column in range(n):
                first = feature_of(plan, column).first_outcome
                product *= shares[c * width + first + strings[column * room + h]]
            total += product
            if product > best:
                best, region = product, c
        weights[h] = total
        regions[h] = region
        survivors[h] = h
    space.alive = space.count


@kernel
def scale(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Divide the factors of each feature by the largest of them: all weights change by one factor."""
    m, width, shares = episode.classes, space.width, space.shares
    for column in range(plan.attributes):
        first = feature_of(plan, column).first_outcome
        outcomes, largest = episode.outcomes(plan)[column], 0.0
        for c in range(m):
            for v in range(outcomes):
                largest = max(largest, shares[c * width + first + v])
        for c in range(m):
            for v in range(outcomes):
                shares[c * width + first + v] /= largest


@kernel
def keep_consistent(space: HypothesisSpace, column: int, outcome: int) -> None:
    """Drop the hypotheses with a different outcome of a feature."""
    strings, survivors, row, kept = space.strings, space.survivors, column * space.room, 0
    for i in range(space.alive):
        h = survivors[i]
        if strings[row + h] == outcome:
            survivors[kept] = h
            kept += 1
    space.alive = kept


@kernel
def infer(plan: PlanRecord, episode: Episode, space: HypothesisSpace, column: int, outcome: int) -> None:
    """Multiply the posterior of the classes by P(outcome | class), and normalise."""
    threshold, posterior, total = episode.threshold(plan)[column], space.posterior, 0.0
    for c in range(episode.classes):
        posterior[c] *= share_of(plan, episode, c, column, threshold, outcome)
        total += posterior[c]
    for c in range(episode.classes):
        if total > 0.0:
            posterior[c] /= total
        else:  # all classes exclude it: no information
            posterior[c] = episode.prior(plan)[c]


@kernel
def infer_all(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Write the posterior of the classes given all observations, in the order of the features.

    The order of purchases must not change a single bit: an episode that is resumed does not store it.
    """
    posterior, prior = space.posterior, episode.prior(plan)
    for c in range(episode.classes):
        posterior[c] = prior[c]
    for column in range(plan.attributes):
        outcome = episode.outcome(plan)[column]
        if outcome >= 0:
            infer(plan, episode, space, column, outcome)


@kernel
def build(plan: PlanRecord, episode: Episode, space: HypothesisSpace) -> None:
    """Make the hypotheses of an episode that fit its observations; the workspace is laid out already."""
    write_shares(plan, episode, space)
    if space.is_all != 0:
        write_all(plan, episode, space)
    else:
        draw_some(plan, episode, space)
    if plan.attributes > PLAIN:
        scale(plan, episode, space)
    weigh(plan, episode, space)
    for column in range(plan.attributes):
        outcome = episode.outcome(plan)[column]
        if outcome >= 0:
            keep_consistent(space, column, outcome)
