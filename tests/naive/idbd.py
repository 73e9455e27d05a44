"""IDBD units of a leaf, the obvious way: a dictionary of inputs (Sutton 1992)."""

import copy
import math
from typing import Any

from tests.naive.observers import Gaussian


class Units:
    """A unit per class: ``[w, β, h]`` of every input by its name: (), a column, or (column, value)."""

    def __init__(self):
        self.units = {}
        self.scale = {}
        """Weight, mean and squared deviations of each numeric column."""

    def unit(self, label, name):
        return self.units.setdefault(label, {}).setdefault(name, [0.0, math.log(0.05), 0.0])

    def child(self):
        """Return the units of a new leaf: without traces, the scale with the weight of 30 records at most."""
        made = copy.deepcopy(self)
        for unit in made.units.values():
            for state in unit.values():
                state[2] = 0.0
        for moments in made.scale.values():
            if moments[0] > 30.0:
                moments[2] *= 30.0 / moments[0]
                moments[0] = 30.0
        return made

    def inputs(self, options, x):
        values: dict[Any, float] = {(): 1.0}
        for column, value in enumerate(x):
            if math.isnan(value):
                continue
            if options.attributes[column] is not None:
                if 0 <= value < options.attributes[column]:
                    values[column, int(value)] = 1.0
                continue
            n, mean, m2 = self.scale.get(column, (0.0, 0.0, 0.0))
            deviation = math.sqrt(m2 / (n - 1.0)) if n > 1.0 else 0.0
            if deviation > 0.0 and value != mean:
                values[column] = min(max((value - mean) / deviation, -5.0), 5.0)
        return values

    def output(self, label, inputs):
        return sum(self.unit(label, name)[0] * value for name, value in inputs.items())

    def outputs(self, options, x, classes):
        inputs = self.inputs(options, x)
        outputs = [min(max(self.output(label, inputs), 0.0), 1.0) for label in range(classes)]
        total = sum(outputs)
        return [value / total for value in outputs] if total > 0.0 else outputs

    def learn(self, options, x, label, weight, classes):
        left = weight
        for _ in range(64):
            share = min(left, 1.0)
            if share <= 0.0:
                break
            inputs = self.inputs(options, x)
            for c in range(classes):
                self.step(c, inputs, float(c == label), share)
            self.widen(options, x, share)
            left -= share
        if left > 0.0:
            self.widen(options, x, left)

    def step(self, label, inputs, target, share):
        delta = target - self.output(label, inputs)
        states = [(self.unit(label, name), value) for name, value in inputs.items()]
        for state, value in states:
            state[1] = min(max(state[1] + share * 0.01 * delta * value * state[2], -10.0), 0.0)
        reach = max(sum(math.exp(state[1]) * value * value for state, value in states), 1.0)
        for state, value in states:
            a = share * math.exp(state[1]) / reach
            state[0] += a * delta * value
            state[2] = state[2] * max(0.0, 1.0 - a * value * value) + a * delta * value
            state[1] = max(state[1] - math.log(reach), -10.0)

    def widen(self, options, x, weight):
        for column, value in enumerate(x):
            if options.attributes[column] is None and not math.isnan(value):
                moments = Gaussian()
                if column in self.scale:
                    moments.weight[0], moments.mean[0], moments.m2[0] = self.scale[column]
                    moments.low[0] = moments.high[0] = value
                moments.observe(value, 0, weight)
                self.scale[column] = [moments.weight[0], moments.mean[0], moments.m2[0]]
