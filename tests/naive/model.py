"""A model, the obvious way: tree, budget, query strategy, detector with background tree, evaluation.

The order of things at a record: count it, predict, decide about asking; with a label: judge the prediction,
tell the detector, train the background tree in a warning, change trees at a drift, train the tree.
"""

from tests.naive.detectors import NoDetector
from tests.naive.evaluation import Evaluation
from tests.naive.queries import Always, CountBudget
from tests.naive.tree import HTree


class Model:
    def __init__(self, options, *, query=None, budget=None, detector=None, reaction="rebuild", window=1000):
        self.options = options
        self.tree = HTree(options)
        self.background = HTree(options)
        self.background_is_stale = True
        self.query = query or Always()
        self.budget = budget or CountBudget()
        self.detector = detector or NoDetector()
        self.reaction = reaction
        self.evaluation = Evaluation(window)
        self.level = "in-control"
        self.t = 0
        self.labels = 0
        self.requests = 0
        self.rebuilds = 0

    def answer(self, x, label=None, weight=1.0, on_request=False):
        """Answer one record; return prediction, whether the label was asked for, and the split.

        A label is learned at once, with ``on_request`` only if it was asked for.
        """
        self.t += 1
        self.tree.visit(x, weight)
        prediction, _ = self.tree.predict(x)
        asked = False
        if on_request or label is None:
            asked = self.ask(x)
        split = None
        if label is not None and (asked or not on_request):
            split = self.learn(x, label, weight, prediction)
        return prediction, asked, split

    def ask(self, x):
        """Decide whether to ask; a closed budget leaves the strategy alone."""
        if not self.budget.is_open(self.requests, self.t):
            return False
        asked = self.query.decide(self.t, self.share(x), self.budget.limit)
        self.requests += asked
        return asked

    def share(self, x):
        """Return the largest class share where x ends, one half for a node without weight."""
        distribution = self.tree.path(x)[0][-1].distribution
        total = sum(distribution)
        return max(distribution) / total if total > 0.0 else 0.5

    def learn(self, x, label, weight=1.0, prediction=None):
        """Learn a label; without the prediction that was given nothing is judged."""
        self.labels += 1
        if prediction is not None and prediction >= 0:
            self.evaluation.judge(label, prediction)
            self.level = self.detector.update(int(prediction != label))
            if self.level == "drift" and self.reaction != "alert":
                self.change_trees()
            elif self.level == "in-control":
                self.background_is_stale = True
        if self.level == "warning" and self.reaction == "rebuild":
            if self.background_is_stale:
                self.background = self.new_tree()
                self.background_is_stale = False
            self.background.visit(x, weight)
            self.background.learn(x, label, weight)
        return self.tree.learn(x, label, weight)

    def change_trees(self):
        """Let the background tree take over; if no warning preceded, a fresh one (MOA: the stale one)."""
        fresh = self.reaction == "reset" or (self.background_is_stale and not self.options.moa)
        self.tree = self.new_tree() if fresh else self.background
        self.background = self.new_tree()
        self.rebuilds += 1

    def new_tree(self):
        """Return a tree that has seen nothing, but knows the model's classes."""
        tree = HTree(self.options)
        tree.classes = self.tree.classes
        return tree
