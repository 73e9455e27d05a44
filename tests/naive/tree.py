"""The Hoeffding tree, the obvious way: nodes are objects, all is recomputed."""

import math
from dataclasses import dataclass, field
from typing import Any

from tests.naive import schedules
from tests.naive.bounds import BOUNDS, is_enough
from tests.naive.criteria import (
    IMPURITIES,
    REACHES,
    conditional,
    entropy,
    gini,
    has_two_branches,
    moa_gini,
    smallest_left,
)
from tests.naive.detectors import HddmA
from tests.naive.idbd import Units
from tests.naive.imac import Imac
from tests.naive.observers import Exact, Gaussian, Histogram, Nominal, Qda, add, is_missing
from tests.naive.votes import first_maximum, from_logarithms, log_bayes, moa_bayes, normalised
from tests.naive.window_detectors import Adwin


@dataclass
class Options:
    """The parameters of a tree.

    ``attributes`` holds None for a numeric one, else the number of values known of it; where it is ``open``
    the trees raise that as they learn. ``classes`` is how many are declared.
    """

    attributes: list[int | None] | tuple[int | None, ...]
    classes: int
    criterion: str = "info_gain"
    grace_period: int = 200
    delta: float = 1e-7
    tau: float = 0.05
    leaf_model: str = "nba"
    binary_splits: bool = False
    max_branches: int = 0
    bound: str = "hoeffding"
    bound_factor: float = 1.0
    mcd_form: str = "corrected"
    variant: str = "practical"
    c: float = 0.05
    numeric_observer: str = "gaussian"
    candidates: int = 10
    open: frozenset[int] = frozenset()
    capacity: int = 200
    bins: int = 32
    warm_up: int = 1000
    edges: str = "quantile"
    low: float = 0.0
    high: float = 1.0
    shared: dict[Any, Any] = field(default_factory=dict)
    moa: bool = False
    inherit: bool = True
    evidence: str = "inherited"
    cdt: bool = False
    freeze_null: bool = False
    schedule: str = "grace_period"
    check_period: int = 200
    keep_illegal: bool = False
    algorithm: str = "h-tree"
    revisit: float = 2000.0
    watched_nodes: str = "leaves"
    change_detector: str = "adwin"
    change_confidence: float = 0.002
    against_none: bool = False
    max_branch_length: int = 1


@dataclass
class Suggestion:
    """A test with its merit; without an attribute the test is "do not split"."""

    merit: float
    attribute: int | None = None
    kind: str = "null"
    value: float = 0.0
    branches: list[list[float]] = field(default_factory=list)


@dataclass
class Split:
    """What happened at a record: where, on what, on how much evidence."""

    attribute: int
    kind: str
    value: float
    weight: float


def numeric(options, attribute):
    """Return a new observer of a numeric attribute; the bins of an attribute are those of all leaves."""
    if options.numeric_observer == "exact":
        return Exact(options.capacity)
    if options.numeric_observer == "histogram":
        return Histogram(options, options.shared.setdefault(attribute, []))
    if options.numeric_observer == "qda":
        return Qda(moa=options.moa)
    return Gaussian(options.candidates, moa=options.moa)


class Node:
    """A leaf, and after its split an inner node."""

    def __init__(self, options, distribution, depth, used):
        self.options = options
        self.distribution = list(distribution)
        self.depth = depth
        self.used = used
        self.test: Any = None
        self.children = []
        self.routed = 0.0
        self.forget()

    def forget(self):
        """Start to observe anew, keeping the class distribution."""
        self.observed = []
        self.left_out = 0.0
        self.frozen = False
        self.observers = None
        self.attempts = 0
        self.majority_right = 0.0
        self.bayes_right = 0.0
        self.interval = self.options.grace_period
        self.imac = None
        self.units = Units()
        self.detector = None
        self.level = "in-control"
        self.at_last_attempt = self.weight()

    def observed_weight(self):
        return sum(self.observed)

    def weight(self):
        """Return the weight that the grace period speaks of."""
        return sum(self.distribution) if self.options.moa else sum(self.observed)

    def evidence(self):
        """Return the weight that bounds speak of: without what the observers left out of their statistics."""
        weight = self.distribution if self.options.evidence == "inherited" else self.observed
        return sum(weight) - self.left_out

    def learn(self, x, label, weight):
        if self.observers is None:
            self.observers = [
                numeric(self.options, attribute)
                if values is None
                else Nominal(self.options.attributes, attribute, self.options.moa)
                for attribute, values in enumerate(self.options.attributes)
            ]
        add(self.distribution, label, weight)
        add(self.observed, label, weight)
        taken = [
            observer.observe(value, label, weight) for observer, value in zip(self.observers, x, strict=True)
        ]
        if False in taken:
            self.left_out += weight

    def branch(self, x):
        """Return the number of the child for x, or None where the test cannot tell."""
        value = x[self.test.attribute]
        if is_missing(value) or (value == -1 and self.test.kind != "numeric"):
            return None
        if self.test.kind == "numeric":
            return 0 if value <= self.test.value else 1
        if self.test.kind == "binary":
            return 0 if value == self.test.value else 1
        return int(value) if value < self.options.attributes[self.test.attribute] else None


class HTree:
    """H-Tree (VFDT); with ``moa`` every quirk of MOA's tree that changes a split or a prediction."""

    def __init__(self, options):
        self.options = options
        self.classes = options.classes
        self.root = Node(options, [], 0, frozenset())
        self.leaves = 1
        self.splits = 0
        self.attempts = 0
        self.ranking = None
        self.suggestions = []
        self.forgotten = False
        self.records = 0  # that the model has seen

    # Routing

    def path(self, x):
        """Return the nodes from the root to where x ends, and the branch it would take there (or None)."""
        node, nodes = self.root, [self.root]
        while node.test is not None:
            branch = node.branch(x)
            known = branch is not None and branch < len(node.children)
            if self.options.moa:
                if branch is None or not known or node.children[branch] is None:
                    return nodes, branch
            elif not known:
                branch = max(range(len(node.children)), key=lambda i: node.children[i].routed)
            node = node.children[branch]
            nodes.append(node)
        return nodes, None

    def visit(self, x, weight=1.0):
        """Count x on its path: where records without the tested value will go."""
        for node in self.path(x)[0]:
            node.routed += weight

    # Prediction

    def predict(self, x):
        """Return the class (-1 while none is known) and the votes (a list by class) for x."""
        nodes, model = self.voter(x)
        votes = self.votes(nodes, x, model)
        if model == "idbd" and any(outputs := nodes[-1].units.outputs(self.options, x, self.classes)):
            return first_maximum(outputs), outputs
        return self.winner(votes, "mc" if model == "idbd" else model) if self.classes else -1, votes

    def voter(self, x):
        """Return the path of x, and the leaf model that answers at its end."""
        nodes, _ = self.path(x)
        model = self.options.leaf_model
        if nodes[-1].test is not None:
            model = "mc"
        elif model == "nba":
            model = "mc" if nodes[-1].majority_right > nodes[-1].bayes_right else "nb"
        return nodes, model

    def shares(self, x):
        """Return the class shares of the answer for x: its votes in proportion, from 0 to 1."""
        nodes, model = self.voter(x)
        votes = self.predict(x)[1]
        if model == "idbd":
            return normalised([min(max(vote, 0.0), 1.0) for vote in votes])
        if model == "nb" and not self.options.moa and sum(nodes[-1].distribution) > 0.0:
            return from_logarithms(votes)
        return normalised(votes)

    def winner(self, votes, model):
        """Return the class with the most votes; of two equals C-Tree and CDT's code take the second."""
        last = self.options.algorithm == "c-tree" or self.options.cdt
        two = last and model == "mc" and self.classes == 2
        if two and len(votes) == 2 and votes[0] == votes[1] > 0.0:
            return 1
        return first_maximum(votes)

    def votes(self, nodes, x, model):
        leaf = nodes[-1]
        if self.options.moa:
            return moa_bayes(leaf, x) if model == "nb" else list(leaf.distribution)
        if sum(leaf.distribution) <= 0.0:
            return list(nodes[-2].distribution) if len(nodes) > 1 else []
        return log_bayes(leaf, x) if model == "nb" else list(leaf.distribution)

    def count_right(self, nodes, x, label, weight):
        """Keep the score of the two leaf models, before the leaf learns the record."""
        leaf = nodes[-1]
        if self.options.moa and not leaf.distribution:
            # MOA: no majority at all in an empty vector, but the first maximum of no votes is class 0.
            leaf.bayes_right += weight * (label == 0)
            return
        leaf.majority_right += weight * (self.winner(self.votes(nodes, x, "mc"), "mc") == label)
        leaf.bayes_right += weight * (first_maximum(self.votes(nodes, x, "nb")) == label)

    # Learning

    def learn(self, x, label, weight=1.0):
        """Learn one record; return the split it caused, or None."""
        self.notice(x, label)
        nodes, branch = self.path(x)
        leaf = nodes[-1]
        if leaf.test is not None:
            if branch is None:
                return None
            leaf = self.grow(leaf, branch)
            nodes.append(leaf)
        if self.options.leaf_model == "nba":
            self.count_right(nodes, x, label, weight)
        if self.options.schedule == "change":
            self.judge(leaf, self.predict(x)[0] != label)
        if self.options.leaf_model == "idbd":
            leaf.units.learn(self.options, x, label, weight, self.classes)
        leaf.learn(x, label, weight)
        seen = leaf.weight()
        if not self.is_due(leaf, x, label, weight):
            return None
        leaf.at_last_attempt = seen
        self.ranking, self.suggestions, self.forgotten = None, [], False
        split = self.attempt(leaf)
        if leaf.test is None and not self.forgotten:
            leaf.interval = schedules.interval(self, leaf, self.ranking)
            if leaf.imac is not None:
                leaf.imac.rebuild(self.suggestions)
        return split

    def notice(self, x, label):
        """Know a class, and values of open attributes, from the first record on that is learned of them."""
        self.classes = max(self.classes, label + 1)
        for attribute in self.options.open:
            if not is_missing(x[attribute]):
                known = self.options.attributes[attribute]
                self.options.attributes[attribute] = max(known, int(x[attribute]) + 1)

    def is_due(self, leaf, x, label, weight):
        """Return whether the schedule wants an attempt after a record."""
        if leaf.frozen:
            return False
        if self.options.schedule == "change":
            return leaf.observed_weight() >= self.options.grace_period and leaf.level == "drift"
        if self.options.schedule != "imac":
            return leaf.weight() - leaf.at_last_attempt >= leaf.interval
        if leaf.imac is None:
            leaf.imac = Imac(self, leaf)
        return leaf.imac.observe(x, label, weight)

    def judge(self, leaf, error):
        """Tell the detector of a leaf whether the leaf's vote was wrong."""
        if leaf.detector is None:
            confidence = self.options.change_confidence
            leaf.detector = {
                "adwin": lambda: Adwin(confidence, compat="moa" if self.options.moa else None),
                "hddm_a": lambda: HddmA(drift=confidence, warning=confidence),
            }[self.options.change_detector]()
        leaf.level = leaf.detector.update(float(error))

    def grow(self, node, branch):
        """Make the leaf of a value that was unknown when the node was split (MOA)."""
        while len(node.children) <= branch:
            node.children.append(None)
        node.children[branch] = Node(self.options, [], node.depth + 1, node.used)
        self.leaves += 1
        return node.children[branch]

    def attempt(self, leaf):
        if self.is_pure(leaf):
            return None
        leaf.attempts += 1
        self.attempts += 1
        best = self.decide_moa(leaf) if self.options.moa else self.decide(leaf)
        if best is None:
            return None
        if best.attribute is None:
            if not self.options.inherit:
                leaf.distribution = []
            leaf.forget()
            leaf.frozen = self.options.freeze_null and leaf is not self.root
            self.forgotten = True
            return None
        return self.install(leaf, best)

    def is_pure(self, leaf):
        """Return whether a leaf knows one class at most: it has nothing to rank, and makes no attempt."""
        evidence = leaf.distribution if self.options.moa else leaf.observed
        return sum(weight != 0.0 for weight in evidence) < 2

    def impurity(self):
        return IMPURITIES[self.options.criterion]

    def merit_range(self, classes):
        return REACHES[self.options.criterion](classes)

    def bound(self, leaf, classes):
        if leaf.evidence() <= 0.0:
            return math.inf
        sizes = [self.options.candidates if n is None else n for n in self.options.attributes]
        return BOUNDS[self.options.bound](
            self.options,
            leaf.evidence(),
            classes=classes,
            depth=leaf.depth,
            records=self.records,
            attributes=len(sizes) + self.options.cdt,  # CDT's code takes the class for one
            tests=max(sizes),
        )

    def decide(self, leaf):
        """Return the test to install, or None: best against second best attribute, both against no split."""
        suggestions = [Suggestion(0.0)]
        for attribute in range(len(self.options.attributes)):
            if attribute not in leaf.used:
                suggestion = self.best_test(leaf, attribute)
                if suggestion is not None:
                    suggestions.append(suggestion)
        self.suggestions = suggestions
        best = max(suggestions, key=lambda s: s.merit)
        second = max((s for s in suggestions if s is not best), key=lambda s: s.merit, default=None)
        self.ranking = (best, second)
        if second is None or best.attribute is None or best.merit < 1e-10:
            return None
        bound = self.bound(leaf, self.classes)
        lead = best.merit - (0.0 if self.options.against_none else second.merit)
        return best if is_enough(self.options, lead, bound) else None

    def decide_moa(self, leaf):
        """Return the test to install (perhaps "do not split"), or None: MOA's order, ties to the last."""
        impurity = self.impurity()
        null = -math.inf if impurity is entropy else 1.0 - gini(leaf.distribution)
        if self.options.criterion == "sorted_error":
            null = smallest_left([leaf.distribution])
        suggestions = [Suggestion(null)]
        for attribute in range(len(self.options.attributes)):
            suggestion = self.best_test(leaf, attribute)
            if suggestion is not None:
                suggestions.append(suggestion)
        self.suggestions = list(suggestions)
        # Java sorts what is not a number behind everything else.
        suggestions.sort(key=lambda s: (1, 0.0) if math.isnan(s.merit) else (0, s.merit))
        if len(suggestions) == 1:
            return suggestions[0]
        self.ranking = (suggestions[-1], suggestions[-2])
        bound = self.bound(leaf, len(leaf.distribution))
        lead = suggestions[-1].merit - (0.0 if self.options.against_none else suggestions[-2].merit)
        return suggestions[-1] if is_enough(self.options, lead, bound) else None

    def best_test(self, leaf, attribute):
        """Return the best test of one attribute, or None if it has none."""
        observer = leaf.observers[attribute]
        tests = []
        if self.options.attributes[attribute] is None:
            tests = [("numeric", value, observer.branches(value)) for value in observer.candidates()]
        elif observer.seen():
            # MOA would also split on a value that is always missing, into no branches at all.
            branches, most = observer.multiway(), self.options.max_branches
            if not self.options.binary_splits and (most == 0 or len(branches) <= most):
                tests.append(("multiway", 0.0, branches))
            tests += [("binary", float(value), observer.branches(value)) for value in observer.candidates()]
        best = None
        for kind, value, branches in tests:
            merit = self.merit(leaf, observer, branches)
            if merit is not None and (best is None or merit > best.merit):
                best = Suggestion(merit, attribute, kind, value, branches)
        return best

    def merit(self, leaf, observer, branches):
        """Return the merit of a test, or None if the branch rule forbids it (MOA: minus infinity)."""
        information = self.options.criterion == "info_gain"
        if information and not has_two_branches(branches):
            return -math.inf if self.options.moa else None
        if self.options.moa:
            if self.options.criterion == "sorted_error":
                return smallest_left(branches)
            return (
                entropy(leaf.distribution) - conditional(entropy, branches)
                if information
                else moa_gini(branches)
            )
        impurity = self.impurity()
        before = impurity(observer.class_totals(len(leaf.observed)))
        return before - conditional(impurity, branches)

    def install(self, leaf, best):
        weight = leaf.evidence()
        leaf.test = best
        used = leaf.used | {best.attribute} if best.kind == "multiway" else leaf.used
        inherited = best.branches if self.options.inherit else [[] for _ in best.branches]
        if self.options.criterion == "sorted_error":
            inherited = [sorted(branch) for branch in inherited]
        leaf.children = [Node(self.options, branch, leaf.depth + 1, used) for branch in inherited]
        self.leaves += len(leaf.children) - 1
        for child in leaf.children if self.options.inherit else []:
            child.units = leaf.units.child()
        if not self.options.inherit:
            leaf.distribution = []
        self.splits += 1
        return Split(best.attribute, best.kind, best.value, weight)

    # What a summary says

    def depth(self):
        return max(node.depth for node in self.nodes())

    def nodes(self):
        """Return all nodes, parents before children."""
        nodes = [self.root]
        for node in nodes:
            nodes += [child for child in node.children if child is not None]
        return nodes
