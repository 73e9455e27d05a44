"""The learners that are no trees, the obvious way: what everything else has to be better than."""

import math

from tests.naive.observers import Gaussian, Nominal, add
from tests.naive.queries import Place
from tests.naive.votes import first_maximum, from_logarithms, is_usable, normalised


class Baseline:
    """What a model asks of its learner; nothing ever splits."""

    splits = attempts = 0

    def __init__(self, options):
        self.options = options
        self.classes = options.classes
        self.records = 0  # that the model has seen
        self.weights = []  # learned, by class

    def visit(self, x, weight=1.0):
        pass

    def votes(self, x):
        return []

    def learn(self, x, label, weight=1.0):
        self.classes = max(self.classes, label + 1)
        for attribute in self.options.open:
            if not math.isnan(x[attribute]):
                known = self.options.attributes[attribute]
                self.options.attributes[attribute] = max(known, int(x[attribute]) + 1)
        add(self.weights, label, weight)
        self.take_in(x, label, weight)

    def take_in(self, x, label, weight):
        pass

    def predict(self, x):
        votes = self.votes(x)
        return first_maximum(votes) if self.classes else -1, votes

    def shares(self, x):
        """Return the class shares of the answer for x."""
        return normalised(self.votes(x))

    def place(self, x):
        return Place(self.weights, self.weights, self.classes)


class MajorityClass(Baseline):
    def votes(self, x):
        return self.weights


class NoChange(Baseline):
    last = -1

    def take_in(self, x, label, weight):
        self.last = label

    def predict(self, x):
        return self.last, []

    def shares(self, x):
        return [float(label == self.last) for label in range(self.classes)]

    def place(self, x):
        return Place([], [], self.classes)


class NaiveBayes(Baseline):
    def __init__(self, options):
        super().__init__(options)
        self.observers = [
            Gaussian() if values is None else Nominal(options.attributes, i, options.moa)
            for i, values in enumerate(options.attributes)
        ]

    def take_in(self, x, label, weight):
        for observer, value in zip(self.observers, x, strict=True):
            observer.observe(value, label, weight)

    def votes(self, x):
        """Return the votes: products of densities, which underflow in MOA's code, or their logarithms."""
        total = sum(self.weights)
        if total == 0.0:
            return []
        return [self.vote(x, label, weight / total) for label, weight in enumerate(self.weights)]

    def vote(self, x, label, share):
        moa = self.options.moa
        vote = share if moa else math.log(share) if share > 0.0 else -math.inf
        for attribute, value in enumerate(x):
            if is_usable(self.options, attribute, value):
                density = self.observers[attribute].density(value, label)
                vote = vote * density if moa else vote + math.log(max(density, 1e-300))
        return vote

    def shares(self, x):
        votes = self.votes(x)
        return normalised(votes) if self.options.moa or not votes else from_logarithms(votes)

    def place(self, x):
        """Strategies go by what it answers, and the weight of all that it has learned."""
        shares, labelled = self.shares(x), sum(self.weights)
        if not shares:
            return Place([], [], self.classes, labelled=labelled)
        return Place(shares, [share * labelled for share in shares], self.classes, labelled=labelled)


BASELINES = {"majority-class": MajorityClass, "no-change": NoChange, "naive-bayes": NaiveBayes}
