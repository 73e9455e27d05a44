"""IMAC, the obvious way (VFS, section 3): every candidate is measured anew at every record."""

import math
from typing import Any, cast

from tests.naive.criteria import entropy
from tests.naive.observers import add, is_missing

NEVER = -math.inf


class Candidate:
    """A test of one attribute and the class distributions of its branches."""

    def __init__(self, suggestion, options, authors):
        self.attribute = suggestion.attribute
        self.kind = suggestion.kind
        self.value = suggestion.value
        self.options = options
        self.branches = [list(branch) for branch in suggestion.branches]
        self.authors = authors
        self.total = sum(map(sum, self.branches))
        self.merit = math.nan if math.isnan(suggestion.merit) else self.direct_merit()

    def impurity(self, branch):
        """Return mass times impurity of a branch."""
        weight = sum(branch)
        if weight <= 0.0:
            return 0.0
        if self.options.criterion == "info_gain":
            return weight * entropy(branch)
        return weight - sum(mass * mass for mass in branch) / weight

    def direct_merit(self):
        """Return the gain; the authors leave out the impurity before the split."""
        mixed = sum(map(self.impurity, self.branches))
        if self.authors:
            return (0.0 if self.options.criterion == "info_gain" else 1.0) - mixed / self.total
        classes = max(map(len, self.branches), default=0)
        totals = [sum(b[c] for b in self.branches if c < len(b)) for c in range(classes)]
        return (self.impurity(totals) - mixed) / self.total

    def branch_of(self, x):
        value = x[self.attribute]
        if is_missing(value):
            return None
        if self.kind == "numeric":
            return 0 if value <= self.value else 1
        if not 0 <= value < self.options.attributes[self.attribute]:
            return None
        if self.kind == "binary":
            return 0 if value == self.value else 1
        return int(value)

    def learn(self, x, label, weight):
        where = self.branch_of(x)
        if where is None:
            return
        while len(self.branches) <= where:
            self.branches.append([])
        branch = self.branches[where]
        if self.authors:
            self.merit = self.authors_merit(branch, label, weight)
            self.total += weight
        add(branch, label, weight)
        if not self.authors:
            self.total = sum(map(sum, self.branches))
            self.merit = self.direct_merit()

    def authors_merit(self, branch, label, w):
        """Return their new merit: Theorem 1 or 2, every mass below 1 being taken for 1."""
        n_j = max(1.0, sum(branch))
        n_jm = max(1.0, branch[label] if label < len(branch) else 0.0)
        if self.options.criterion == "info_gain":
            change = n_j * math.log2(n_j / (n_j + w)) + n_jm * math.log2((n_jm + w) / n_jm)
            change += w * math.log2((n_jm + w) / (n_j + w))
        else:
            change = (2.0 * w * n_jm + w * w) / (n_j + w)
            change -= w * sum(mass * mass for mass in branch) / (n_j * (n_j + w))
        return (self.merit * self.total + change) / (self.total + w)


class Imac:
    """The candidates of a leaf (P), and the attributes that wait (M: last merits) or are out of it (I)."""

    def __init__(self, tree, leaf):
        self.tree = tree
        self.leaf = leaf
        self.options = tree.options
        self.authors = tree.options.moa
        self.built = False
        self.candidates = []
        self.potential = {}
        self.illegal = set()
        self.checked = 0.0
        self.not_before = tree.options.grace_period

    def observe(self, x, label, weight):
        """Take in a record that the leaf has learned; return whether the leaf is due."""
        evidence = self.leaf.distribution if self.authors else self.leaf.observed
        observed = sum(self.leaf.observed)
        if not self.built:
            if observed < self.not_before:
                return False
            if sum(mass != 0.0 for mass in evidence) >= 2:
                return True
            if self.authors:
                self.not_before = observed + self.options.grace_period
            return False
        for candidate in self.candidates:
            candidate.learn(x, label, weight)
        needed, is_tie = self.needed_gap(), self.is_tie()
        due = self.gap() > needed or (is_tie and not self.authors)
        if not due and observed - self.checked >= self.options.check_period:
            due = self.check(needed)
        return (due or is_tie) and observed >= self.not_before

    def classes(self):
        return len(self.leaf.distribution) if self.authors else self.tree.classes

    def needed_gap(self):
        return self.options.bound_factor * self.tree.bound(self.leaf, self.classes())

    def is_tie(self):
        tau = self.options.tau
        return tau > 0.0 and self.tree.bound(self.leaf, self.classes()) < tau

    def null(self):
        """Return the merit of "do not split"."""
        if not self.authors:
            return 0.0
        if self.options.criterion == "info_gain":
            return NEVER
        total = sum(self.leaf.distribution)
        return sum((mass / total) ** 2 for mass in self.leaf.distribution)

    def gap(self):
        merits = sorted((c.merit for c in self.candidates if not math.isnan(c.merit)), reverse=True)
        if not merits:
            return NEVER
        return merits[0] - max([self.null(), *merits[1:2]])

    def rebuild(self, suggestions):
        """Choose candidates from the suggestions of an attempt that has failed (one for each attribute)."""
        self.built = True
        self.checked = observed = sum(self.leaf.observed)
        self.not_before = observed + self.options.check_period if self.is_tie() else observed
        known = [s for s in suggestions if s.attribute is not None]
        # What is not a number comes before everything else, as Java sorts it.
        order = sorted(
            known,
            key=lambda s: (
                not math.isnan(s.merit),
                0.0 if math.isnan(s.merit) else -s.merit,
                -s.attribute if self.authors else s.attribute,
            ),
        )
        room = self.room(len(suggestions))
        self.candidates, self.potential, self.illegal = [], {}, set()
        needed = math.inf if self.options.keep_illegal else self.needed_gap()
        for position, suggestion in enumerate(order):
            near = not order[0].merit - suggestion.merit > needed
            if (position < 2 and position < room) or (near and position < room):
                self.candidates.append(Candidate(suggestion, self.options, self.authors))
            elif near:
                self.potential[suggestion.attribute] = suggestion.merit
            else:
                self.illegal.add(suggestion.attribute)
        named = {s.attribute for s in known}
        for attribute in range(len(self.options.attributes)):
            if attribute not in named:
                if attribute in self.leaf.used and not self.authors:
                    self.illegal.add(attribute)
                else:
                    self.potential[attribute] = NEVER

    def room(self, suggestions):
        d = len(self.options.attributes)
        if not self.authors:
            return min(d, min(max(d // 10, 5), 10))
        room = min(max(suggestions // 10, 5), 10)
        return min(d, 2 if room > suggestions // 2 else room)

    def best_now(self, attribute):
        """Return the best test of an attribute now, None if it has none; merits as candidates reckon them."""
        suggestion = self.tree.best_test(self.leaf, attribute)
        if suggestion is None:
            return None
        candidate = Candidate(suggestion, self.options, self.authors)
        if suggestion.merit == NEVER:
            candidate.merit = NEVER
        return candidate

    def check(self, needed):
        """Renew thresholds and exchange candidates; return whether the gap is enough now."""
        self.checked = sum(self.leaf.observed)
        for position, candidate in enumerate(self.candidates):
            if candidate.kind == "numeric":
                renewed = self.best_now(candidate.attribute)
                self.candidates[position] = renewed or candidate
        if self.gap() > needed:
            return True
        newcomer = None
        while self.potential:
            numbers = [c for c in self.candidates if not math.isnan(c.merit)] or self.candidates
            worst = cast("Any", min(reversed(numbers), key=lambda c: c.merit, default=None))
            if newcomer is not None and worst is newcomer:
                break
            attribute = max(
                sorted(self.potential),
                key=lambda a: math.inf if math.isnan(self.potential[a]) else self.potential[a],
            )
            new = self.best_now(attribute)
            del self.potential[attribute]
            best = max((c.merit for c in self.candidates if not math.isnan(c.merit)), default=NEVER)
            has_room = not self.authors and len(self.candidates) < self.room(0)
            if new is None or not (has_room or new.merit > worst.merit):
                self.put_away(attribute, new.merit if new else NEVER, new is not None, best, needed)
                break
            if has_room:
                if len(self.candidates) >= 2 and best - new.merit > needed:
                    self.illegal.add(attribute)
                    continue
                self.candidates.append(new)
            else:
                position = self.candidates.index(worst)
                self.put_away(worst.attribute, worst.merit, True, best, needed)
                if self.authors and best - new.merit > needed:
                    self.illegal.add(attribute)
                    self.candidates[position] = self.candidates[-1]
                    self.candidates.pop()
                    continue
                self.candidates[position] = new
            newcomer = new
        return False

    def put_away(self, attribute, merit, known, best, needed):
        if known and best - merit > needed:
            self.illegal.add(attribute)
        else:
            self.potential[attribute] = merit
