"""A model, the obvious way: tree, budget, query strategy, detector with background tree, evaluation.

The order of things at a record: count it, predict, decide about asking; with a label: judge the prediction,
tell the detector, train the background tree in a warning, change trees at a drift, train the tree.
"""

from typing import Any

from tests.naive.baselines import BASELINES
from tests.naive.boct import Boct
from tests.naive.detectors import NoDetector
from tests.naive.efdt import Efdt
from tests.naive.evaluation import Evaluation
from tests.naive.plastic import Plastic
from tests.naive.queries import Always, CountBudget, Place, SetSize, is_reserved
from tests.naive.tree import HTree
from tests.naive.ufft import Ufft

TREES = {"h-tree": HTree, "c-tree": HTree, "corrh-tree": HTree, "mcdiarmid-tree": HTree, "efdt": Efdt}
TREES |= {"last": HTree, "efhat": HTree, "plastic": Plastic}
LEARNERS: dict[str, Any] = {**TREES, **BASELINES, "boct": Boct, "ufft": Ufft}


class Model:
    def __init__(
        self,
        options,
        *,
        query=None,
        budget=None,
        detector=None,
        reaction="rebuild",
        window=1000,
        slice_=0,
        seed=1,
        score=None,
        class_weights=None,
    ):
        self.options = options
        self.tree = LEARNERS[options.algorithm](options)
        self.background = LEARNERS[options.algorithm](options)
        self.background_is_stale = True
        self.query = query or Always()
        self.class_weights = class_weights  # a rule, or weights by label
        self.labels_judged = {}  # by label
        self.score = score  # of the answer, by which the strategy goes; None: by the leaf
        self.budget = budget or CountBudget()
        self.detector = detector or NoDetector()
        self.reaction = reaction
        self.evaluation = Evaluation(window)
        self.level = "in-control"
        self.t = 0
        self.slice = slice_  # one record in so many is drawn for the evaluation
        self.seed = seed
        self.labels = 0
        self.asked = []  # for each request "strategy" or "evaluation"
        self.closed = {"answered": 0, "declined": 0, "expired": 0}
        self.refused = 0
        self.sampled = []  # of each record None, "strategy" or "evaluation"
        self.importance = []  # of each record: for how many its label would stand, None: for nobody
        self.chances = []  # of records the strategy was asked about: how many each carries, how likely
        self.shut = 0.0  # records that found the budget closed, and are to be stood in for
        self.chosen = 0
        self.judged = []  # of the unbiased evaluation: for how many a prediction stands, whether it was right
        self.rebuilds = 0

    def answer(self, x, label=None, weight=1.0, on_request=False):
        """Answer one record; return prediction, whether the label was asked for, and the split.

        A label is learned at once, with ``on_request`` only if it was asked for.
        """
        self.tree.clock = self.t
        self.t += 1
        self.tree.visit(x, weight)
        prediction, _ = self.tree.predict(x)
        if isinstance(self.query, SetSize):
            # Classes that the leaf has not seen are known, with shares of 0.
            shares = self.tree.shares(x)
            shares = [*shares, *[0.0] * (self.tree.classes - len(shares))]
            self.query.answered(shares if prediction >= 0 else [])
        asked = False
        self.sampled.append("evaluation" if is_reserved(self.seed, self.t, self.slice) else None)
        if on_request or label is None:
            asked = self.ask(x)
        if len(self.importance) < self.t:
            self.importance.append(None)
        split = None
        if label is not None and (asked or not on_request):
            split = self.learn(x, label, weight, prediction, asked, self.sampled[-1], self.importance[-1])
            if isinstance(self.query, SetSize):
                came_along = not on_request and not self.slice
                reserved = float(self.sampled[-1] == "evaluation")
                stands = reserved if self.slice else self.importance[-1]
                self.query.judge(label, 1.0 if came_along else stands)
        return prediction, asked, split

    @property
    def requests(self):
        return len(self.asked)

    def ask(self, x):
        """Decide whether to ask; a closed budget leaves the strategy alone."""
        reserved = self.sampled[-1] == "evaluation"
        answer = "random" if reserved else "no"
        if not reserved:
            returned = self.closed["declined"] + self.closed["expired"] if self.budget.respend else 0
            spent = self.asked.count("strategy") - returned
            if self.slice:
                spent += 1 + (self.t - 1) / self.slice
            if self.budget.is_open(spent, returned, self.t):
                place = self.place(x)
                place.in_hand = self.budget.limit * self.t - spent
                place.answered, place.score = self.tree.shares(x), self.score
                place.recent, place.repeated = self.evaluation.repeated()
                place.hits = round(self.evaluation.accuracy(windowed=True) * len(place.recent))
                place.reserved = 1 / self.slice if self.slice else 0.0
                chance = self.query.chance(self.t, place, self.budget.limit)
                answer = self.query.decide(self.t, place, self.budget.limit)
                self.importance.append(self.importance_of(answer != "no", chance))
            else:
                self.refused += 1
                self.shut += 1.0
            if answer == "random":
                self.sampled[-1] = "strategy"
        self.budget.spend(answer != "no", reserved)
        if answer != "no":
            self.asked.append("evaluation" if reserved else "strategy")
        return answer != "no"

    def importance_of(self, asked, chance):
        """Let a record take over a fourth of those that wait; return for how many its label stands."""
        if chance is None:
            self.shut = 0.0
            return None
        carried = 1.0 + self.shut / 4.0
        self.shut -= self.shut / 4.0
        self.chances.append((carried, chance))
        self.chosen += asked
        return carried / chance if asked else None

    def unbiased(self):
        """Return the estimate of the accuracy over all records, and the number of labels it is worth."""
        total = sum(importance for importance, _ in self.judged)
        share = sum(importance for importance, right in self.judged if right) / total
        if self.slice:
            return share, len(self.judged)
        n = sum(carried for carried, _ in self.chances) ** 2
        n /= sum(carried**2 / chance for carried, chance in self.chances)
        return share, n * len(self.judged) / max(self.chosen, len(self.judged))

    def place(self, x):
        """Return where x ends, as a strategy sees it."""
        if self.options.algorithm not in TREES:
            return self.tree.place(x)
        node = self.tree.path(x)[0][-1]
        observed = node.observed if node.test is None else None
        return Place(node.distribution, observed, self.tree.classes)

    def close(self, how, n=1):
        """Close requests: "answered", "declined" or "expired"."""
        self.closed[how] += n

    def learn(self, x, label, weight=1.0, prediction=None, requested=False, sampled=None, importance=None):
        """Learn a label; without the prediction that was given nothing is judged."""
        self.labels += 1
        self.closed["answered"] += requested
        if prediction is not None and prediction >= 0:
            self.evaluation.judge(label, prediction)
            self.labels_judged[label] = self.labels_judged.get(label, 0) + 1
            if self.slice:
                importance = 1.0 if sampled == "evaluation" else None
            if importance is not None:
                self.judged.append((importance, prediction == label))
        seen = not requested or sampled is not None or not getattr(self.query, "sampled_detection", False)
        if prediction is not None and prediction >= 0 and seen:
            self.level = self.detector.update(int(prediction != label))
            if self.level == "drift" and isinstance(self.query, SetSize):
                self.query.threshold.steps = 0
            if self.level == "drift" and self.reaction != "alert":
                self.change_trees()
            elif self.level == "in-control":
                self.background_is_stale = True
        weight *= self.class_weight(label)
        if self.level == "warning" and self.reaction == "rebuild":
            if self.background_is_stale:
                self.background = self.new_tree()
                self.background_is_stale = False
            self.background.records = max(self.t, self.labels)
            self.background.clock = self.labels - 1
            getattr(self.background, "count", self.background.visit)(x, weight)
            self.background.learn(x, label, weight)
        self.tree.records = max(self.t, self.labels)
        self.tree.clock = self.labels - 1
        return self.tree.learn(x, label, weight)

    def class_weight(self, label):
        """Return by how much a label of this class counts more than one of an even class."""
        if not isinstance(self.class_weights, str):
            return (self.class_weights or {}).get(label, 1.0)
        k = max(self.tree.classes, label + 1)
        share = (self.labels_judged.get(label, 0) + 1) / (sum(self.labels_judged.values()) + k)
        return (1 / (k * share)) ** (0.5 if self.class_weights == "sqrt_balanced" else 1.0)

    def change_trees(self):
        """Let the background tree take over; if no warning preceded, a fresh one (MOA: the stale one)."""
        fresh = self.reaction == "reset" or (self.background_is_stale and not self.options.moa)
        self.tree = self.new_tree() if fresh else self.background
        self.background = self.new_tree()
        self.rebuilds += 1

    def new_tree(self):
        """Return a tree that has seen nothing, but knows the model's classes."""
        tree = LEARNERS[self.options.algorithm](self.options)
        tree.classes = self.tree.classes
        return tree
