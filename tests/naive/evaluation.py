"""Prequential evaluation, the obvious way: all is counted anew from the list of judged predictions."""

from itertools import pairwise


def against(accuracy, hits, n):
    return (accuracy - hits / n) / (1.0 - hits / n) if hits < n else 0.0


class Evaluation:
    """Judged predictions in order; measures over all of them and over the last ``window``."""

    def __init__(self, window=1000):
        self.window = window
        self.judged = []

    def judge(self, label, prediction):
        self.judged.append((label, prediction))

    def accuracy(self, windowed=False):
        pairs = self.pairs(windowed)
        return sum(label == prediction for label, prediction in pairs) / len(pairs) if pairs else 0.0

    def kappa(self, windowed=False):
        """Return (p0 - pe) / (1 - pe): p0 the accuracy, pe that of chance with the same class shares."""
        pairs = self.pairs(windowed)
        if not pairs:
            return 0.0
        n = len(pairs)
        classes = {label for label, _ in pairs} | {prediction for _, prediction in pairs}
        chance = sum(
            sum(label == c for label, _ in pairs) * sum(prediction == c for _, prediction in pairs)
            for c in classes
        ) / (n * n)
        return (self.accuracy(windowed) - chance) / (1.0 - chance) if chance < 1.0 else 0.0

    def kappa_m(self, windowed=False):
        """Return (p - m) / (1 - m): m the accuracy of the class with most labels, this one counted."""
        pairs = self.pairs(windowed)
        start = len(self.judged) - len(pairs)
        hits = 0
        for i in range(start, len(self.judged)):
            first = max(i + 1 - self.window, 0) if windowed else 0
            labels = [label for label, _ in self.judged[first : i + 1]]
            hits += max(sorted(set(labels)), key=labels.count) == labels[-1]
        return against(self.accuracy(windowed), hits, len(pairs))

    def repeated(self):
        """Return the labels in the window, and how many of them are equal to the label before."""
        labels = [0, *(label for label, _ in self.judged)]
        recent = labels[1:][-self.window :]
        before = labels[:-1][-self.window :]
        return recent, sum(label == other for label, other in zip(recent, before, strict=True))

    def kappa_temporal(self, windowed=False):
        """Return the same against the label before; before the first it is class 0."""
        labels = [0, *(label for label, _ in self.judged)]
        pairs = self.pairs(windowed)
        hits = sum(one == other for one, other in list(pairwise(labels))[-len(pairs) :]) if pairs else 0
        return against(self.accuracy(windowed), hits, len(pairs))

    def f1_rarer(self, windowed=False):
        """Return F1 of the class with the fewest labels, the lowest code of equals."""
        pairs = self.pairs(windowed)
        if not pairs:
            return 0.0
        labels = [label for label, _ in pairs]
        rarer = min(sorted(set(labels)), key=labels.count)
        hits = sum(label == prediction == rarer for label, prediction in pairs)
        predicted = sum(prediction == rarer for _, prediction in pairs)
        return 2.0 * hits / (labels.count(rarer) + predicted)

    def pairs(self, windowed):
        return self.judged[-self.window :] if windowed else self.judged
