"""Streaming gradient boosting, the obvious way: trees are objects, sums are in dicts, from MOA's sources.

Follows ``StreamingGradientBoostedTrees``, ``FIMTDD`` and its E-BST in MOA 2024.07. An E-BST holds, for each
value that it has met, the sums of the targets up to it, whatever the shape of the tree; so a dict from value
to sums has the same candidates. ``bins`` bounds the number of values, inf: MOA has no bound.
"""

import math
from bisect import bisect_left

LEAST_SHARE = 1e-4
EQUAL = 1e-9
"""Relative difference of merits that rounding may have made."""


class Sums:
    def __init__(self):
        self.n = self.total = self.squares = 0.0

    def add(self, weight, target):
        self.n += weight
        self.total += weight * target
        self.squares += weight * target * target

    def plus(self, other):
        together = Sums()
        together.n = self.n + other.n
        together.total = self.total + other.total
        together.squares = self.squares + other.squares
        return together

    def minus(self, other):
        rest = Sums()
        rest.n = self.n - other.n
        rest.total = self.total - other.total
        rest.squares = self.squares - other.squares
        return rest

    def variance(self):
        return (self.squares - self.total * self.total / self.n) / self.n


def reduction(whole, left):
    right = whole.minus(left)
    if left.n < 5.0 or right.n < 5.0:
        return 0.0
    parts = left.n / whole.n * left.variance() + right.n / whole.n * right.variance()
    reduced = whole.variance() - parts
    return reduced if reduced > EQUAL * whole.squares / whole.n else 0.0


class Column:
    """A column of a leaf: sums by value, and above the largest one once there is no room for more."""

    def __init__(self, bins):
        self.bins = bins
        self.sums = {}
        self.above = Sums()

    def observe(self, value, weight, target):
        if value not in self.sums and len(self.sums) < self.bins:
            self.sums[value] = Sums()
        values = sorted(self.sums)
        place = bisect_left(values, value)
        (self.sums[values[place]] if place < len(values) else self.above).add(weight, target)

    def best(self):
        """Return the merit and the value of the best cut."""
        whole, left = Sums(), Sums()
        for value in sorted(self.sums):
            whole = whole.plus(self.sums[value])
        whole = whole.plus(self.above)
        best, cut = 0.0, min(self.sums)
        for value in sorted(self.sums):
            left = left.plus(self.sums[value])
            if (merit := reduction(whole, left)) > best * (1.0 + EQUAL):
                best, cut = merit, value
        return best, cut


class Node:
    def __init__(self, is_watched=True):
        self.weight = self.total = self.tried = self.errors = 0.0
        self.columns = {}
        self.test = None
        self.left = self.right = None
        self.is_watched = is_watched
        self.alternate = None
        self.reset()

    def reset(self):
        self.rise, self.lowest = 0.0, math.inf

    @property
    def value(self):
        return self.total / self.weight if self.weight else 0.0

    def stop_watching(self):
        self.is_watched = False
        for child in filter(None, (self.left, self.right)):
            child.stop_watching()

    def watch_again(self):
        if self.alternate is None:
            self.is_watched = True
            self.reset()
            for child in filter(None, (self.left, self.right)):
                child.watch_again()


class Alternate:
    """An alternate tree, and the faded losses of both trees since it began."""

    def __init__(self):
        self.root = Node()
        self.own_loss = self.other_loss = self.seen = self.compared = 0.0


class Tree:
    """FIMT-DD as MOA's boosting uses it, without a model in leaves.

    attributes: None for a numeric one, else the number of its values. seen: the attributes that it uses.
    """

    def __init__(self, attributes, seen, options):
        self.attributes = attributes
        self.seen = seen
        self.options = options
        self.root = Node(options["alternates"])
        self.sums = Sums()
        self.splits = self.attempts = self.begun = self.taken = self.dropped = 0

    def is_missing(self, attribute, value):
        values = self.attributes[attribute]
        return not math.isfinite(value) if values is None else not 0.0 <= value < values

    def child(self, node, x):
        attribute, code, cut = node.test
        if self.is_missing(attribute, x[attribute]):
            return node.right if node.right.weight > node.left.weight else node.left
        if code is not None:
            return node.right if x[attribute] == code else node.left
        return node.right if x[attribute] > cut else node.left

    def predict(self, x, node=None):
        node = node or self.root
        while node.test:
            node = self.child(node, x)
        return node.value

    def error(self, difference):
        variance = self.sums.variance()
        if not variance > EQUAL * self.sums.squares / self.sums.n:
            return 0.0
        return abs(difference) / (3.0 * math.sqrt(variance))

    def learn(self, x, weight, target):
        """Learn a record; return what the leaf that it came to predicts then, 0 if that was split.

        A record with a missing value may go elsewhere afterwards: a subtree that takes over may be lighter.
        """
        self.sums.add(weight, target)
        prediction = self.predict(x)
        error = self.error(target - prediction)
        self.root = self.learn_below(self.root, x, weight, target, (prediction, error), True)
        return 0.0 if self.last.test else self.last.value

    def learn_below(self, node, x, weight, target, answer, may_split):
        """Let the nodes from one down learn a record; return the node that stands there afterwards.

        answer: prediction and error of the whole tree.
        """
        prediction, error = answer
        if not node.test:
            self.last = node
            self.learn_leaf(node, x, weight, target, may_split)
            return node
        node.weight += weight
        node.errors += weight * error
        if (alternate := node.alternate) is not None:
            outcome = self.judge(alternate, x, weight, target, prediction)
            if outcome == "better":
                self.taken += 1
                root = alternate.root
                if may_split:
                    root.watch_again()
                if not root.test:
                    self.learn_below(root, x, weight, target, answer, may_split)
                else:
                    self.descend(root, x, weight, target, answer, may_split)
                return root
            if outcome == "over":
                self.dropped += 1
                node.alternate = None
                if may_split:
                    node.watch_again()
            else:
                may_split = False
                self.learn_beside(alternate.root, x, weight, target, error)
        if node.is_watched:
            node.rise += weight * (error - node.errors / node.weight - self.options["drift_tolerance"])
            node.lowest = min(node.lowest, node.rise)
            if node.rise - node.lowest > self.options["drift_threshold"]:
                self.begun += 1
                node.alternate = Alternate()
                node.stop_watching()
        self.descend(node, x, weight, target, answer, may_split)
        return node

    def descend(self, node, x, weight, target, answer, may_split):
        side = "left" if self.child(node, x) is node.left else "right"
        child = getattr(node, side)
        setattr(node, side, self.learn_below(child, x, weight, target, answer, may_split))

    def judge(self, alternate, x, weight, target, prediction):
        fading = self.options["fading"]
        other = self.predict(x, alternate.root)
        alternate.own_loss = weight * (target - prediction) ** 2 + fading * alternate.own_loss
        alternate.other_loss = weight * (target - other) ** 2 + fading * alternate.other_loss
        alternate.seen += weight
        if alternate.seen - alternate.compared < self.options["switch_period"]:
            return "open"
        alternate.compared = alternate.seen
        if alternate.own_loss > alternate.other_loss:
            return "better"
        return "over" if alternate.seen >= self.options["drop_period"] else "open"

    def learn_beside(self, node, x, weight, target, error):
        while node.test:
            node.weight += weight
            node.errors += weight * error
            node = self.child(node, x)
        self.learn_leaf(node, x, weight, target, True)

    def learn_leaf(self, node, x, weight, target, may_split):
        node.weight += weight
        node.total += weight * target
        node.errors += weight * self.error(target - node.value)
        for attribute in self.seen:
            if not self.is_missing(attribute, x[attribute]):
                self.observe(node, attribute, x[attribute], weight, target)
        if may_split and node.weight - node.tried >= self.options["grace_period"]:
            node.tried = node.weight
            self.attempt(node)

    def observe(self, node, attribute, value, weight, target):
        if self.attributes[attribute] is None:
            node.columns.setdefault((attribute, None), Column(self.options["bins"]))
            node.columns[attribute, None].observe(value, weight, target)
            return
        codes = range(self.attributes[attribute])
        for code in codes[1:] if len(codes) == 2 else codes:
            column = node.columns.setdefault((attribute, code), Column(math.inf))
            column.observe(float(value == code), weight, target)

    def attempt(self, node):
        self.attempts += 1
        order = sorted(node.columns, key=lambda c: (self.attributes[c[0]] is not None, c[0], c[1] or 0))
        suggestions = [(*node.columns[column].best(), column) for column in order]
        if not suggestions:
            return
        merits = [merit for merit, *_ in suggestions]
        best = len(merits) - 1  # of equals the last, like Java's stable sort
        for i in range(len(merits) - 2, -1, -1):
            best = i if merits[i] * (1.0 - EQUAL) > merits[best] else best
        merit, cut, (attribute, code) = suggestions[best]
        if merit <= 0.0:
            return
        bound = math.sqrt(math.log(1.0 / self.options["delta"]) / (2.0 * node.weight))
        others = merits[:best] + merits[best + 1 :]
        if others and not (max(others) / merit < 1.0 - bound or bound < self.options["tau"]):
            return
        node.test = attribute, code, cut
        node.left, node.right = Node(node.is_watched), Node(node.is_watched)
        node.columns = {}
        self.splits += 1


def sigmoid(score):
    top = max(score, 0.0)
    return math.exp(score - top) / (math.exp(score - top) + math.exp(-top))


class Sgbt:
    """``seen``: the attributes of each tree, a list for each committee; classes: their number, all known."""

    def __init__(self, attributes, classes, seen, options):
        self.classes = classes
        self.rate = options["learning_rate"]
        self.moa = options["compat"] == "moa"
        self.committees = [[Tree(attributes, subset, options) for subset in subsets] for subsets in seen]
        self.has_learned = False

    def score(self, committee, x):
        score = sum(tree.predict(x) for tree in committee)
        return score if self.moa else self.rate * score

    def shares(self, x):
        """Return the shares of all classes; None before the first label."""
        if not self.has_learned:
            return None
        scores = [self.score(committee, x) for committee in self.committees]
        shares = [sigmoid(score) for score in scores]
        if self.classes == 2:
            shares.append(sigmoid(-scores[0]))
        return [share / sum(shares) for share in shares]

    def learn(self, x, label, weight):
        self.has_learned = True
        for c, committee in enumerate(self.committees):
            y, score = float(label == c), 0.0
            for tree in committee:
                p = sigmoid(score)
                if not self.moa:
                    p = min(max(p, LEAST_SHARE), 1.0 - LEAST_SHARE)
                score += self.rate * tree.learn(x, weight, (y - p) / (p * (1.0 - p)))

    def count(self, what):
        """Return the sum of a count of all trees: splits, or alternate trees begun, taken or dropped."""
        return sum(getattr(tree, what) for committee in self.committees for tree in committee)
