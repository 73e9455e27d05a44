"""EFDT (Hoeffding Anytime Tree), the obvious way: all nodes keep learning, inner ones revise their test.

[D38]; Manapragada, Webb and Salehi 2018. A node keeps, beside its observers, the sum of the merits that each
attribute's best test had at its evaluations, and of the merits of the test it has.
"""

import math
from dataclasses import dataclass

from tests.naive.criteria import gini
from tests.naive.imac import NEVER, Candidate, Imac
from tests.naive.tree import HTree, Node, Split, Suggestion


@dataclass
class Revision:
    """An inner node got another test ("replaced", "moved"), or became a leaf ("pruned")."""

    action: str
    attribute: int
    kind: str
    value: float
    weight: float


def java_order(suggestion):
    """Return the sorting key of a suggestion: what is not a number comes last."""
    return (1, 0.0) if math.isnan(suggestion.merit) else (0, suggestion.merit)


class RevisingNode(Node):
    """A node that remembers merits: sums by attribute, the sum of its test, the number of evaluations."""

    def __init__(self, options, distribution, depth, used):
        self.sums = {}
        self.evaluations = 0
        self.test_sum = 0.0
        self.null_sum = 0.0
        self.revisit_at = 0.0
        self.is_new = False  # it came with the arrangement that PLASTIC is making
        super().__init__(options, distribution, depth, used)

    def forget(self):
        super().forget()
        self.at_last_attempt = 0.0
        self.sums = {}
        self.evaluations = 0
        self.null_sum = 0.0


class AnytimeImac(Imac):
    """The candidates of a leaf of EFDT: what counts is the best average that an attempt would find now."""

    def gap(self):
        leaf = self.leaf
        return max(
            (
                (leaf.sums.get(candidate.attribute, 0.0) + candidate.merit) / (leaf.evaluations + 1)
                for candidate in self.candidates
            ),
            default=-math.inf,
        )


class Rivals(Imac):
    """The candidates of an inner node: its own test first, then the best tests of the best other attributes.

    An attribute that has lost at a check has its next turn when all others have had theirs.
    """

    def __init__(self, tree, node):
        super().__init__(tree, node)
        self.last = {}

    def observe(self, x, label, weight):
        observed = sum(self.leaf.observed)
        for candidate in self.candidates:
            candidate.learn(x, label, weight)
        due = self.is_beaten()
        if not due and observed - self.checked >= self.options.check_period:
            due = self.check_rivals()
        return due and observed >= self.not_before

    def is_beaten(self, other=None):
        """Return whether a rival's gain leads by enough; other: a better test of the same attribute."""
        rivals = self.candidates[1:] + ([other] if other else [])
        lead = max((rival.merit for rival in rivals), default=NEVER) - self.candidates[0].merit
        return lead > self.needed_gap() or (self.is_tie() and lead > self.options.tau / 2.0)

    def own_candidate(self):
        test = self.leaf.test
        branches = self.tree.current_branches(self.leaf)
        return Candidate(
            Suggestion(0.0, test.attribute, test.kind, test.value, branches), self.options, False
        )

    def rebuild(self, suggestions):
        self.checked = observed = sum(self.leaf.observed)
        own = self.leaf.test.attribute
        others = [suggestion for suggestion in suggestions if suggestion.attribute != own]
        others.sort(key=lambda suggestion: (-suggestion.merit, suggestion.attribute))
        chosen = others[: self.room(0) - 1]
        self.candidates = [self.own_candidate()]
        self.candidates += [Candidate(suggestion, self.options, False) for suggestion in chosen]
        self.illegal = set(self.leaf.used)
        self.potential = dict.fromkeys(range(len(self.options.attributes)), NEVER)
        self.potential |= {suggestion.attribute: suggestion.merit for suggestion in others}
        for attribute in [*self.illegal, *(candidate.attribute for candidate in self.candidates)]:
            self.potential.pop(attribute, None)
        self.not_before = observed + (self.options.check_period if self.is_beaten() else 0.0)

    def check_rivals(self):
        self.checked = sum(self.leaf.observed)
        for position, candidate in enumerate(self.candidates):
            if position > 0 and candidate.kind == "numeric":
                self.candidates[position] = self.best_now(candidate.attribute) or candidate
        own = self.candidates[0] = self.own_candidate()
        other = self.best_now(own.attribute)
        if other is not None and (other.kind, other.value) == (own.kind, own.value):
            other = None
        if self.is_beaten(other):
            return True
        for _ in range(math.ceil(len(self.options.attributes) / 10)):
            if not self.potential:
                self.potential, self.illegal = self.illegal_again(), set(self.leaf.used)
            if not self.potential:
                break
            attribute = max(sorted(self.potential), key=lambda a: self.potential[a])
            self.challenge(attribute, self.best_now(attribute))
        return False

    def illegal_again(self):
        return {attribute: self.last[attribute] for attribute in self.illegal - set(self.leaf.used)}

    def challenge(self, attribute, new):
        del self.potential[attribute]
        if new is not None and len(self.candidates) < self.room(0):
            self.candidates.append(new)
            return
        worst = min(reversed(self.candidates[1:]), key=lambda rival: rival.merit, default=None)
        if worst is None or new is None or not new.merit > worst.merit:
            self.lose(attribute, new.merit if new else NEVER)
            return
        self.lose(worst.attribute, worst.merit)
        self.candidates[self.candidates.index(worst)] = new

    def lose(self, attribute, merit):
        self.illegal.add(attribute)
        self.last[attribute] = merit


class Efdt(HTree):
    """EFDT; with ``moa`` every quirk of MOA's (release 2024.07.0).

    MOA revisits every inner node on the path of every ``revisit``-th record of the tree, starts to count the
    evaluations anew when a node gets a test but keeps the sums, never moves a threshold, and forgets below a
    numeric test which nominal attributes have been used above it.
    """

    def __init__(self, options):
        super().__init__(options)
        self.root = RevisingNode(options, [], 0, frozenset())
        self.learned = 0

    # Learning

    def learn(self, x, label, weight=1.0):
        """Learn one record at every node of its path; return what it changed (a list), or None."""
        self.notice(x, label)
        nodes, branch = self.path(x)
        if nodes[-1].test is not None and branch is not None:
            nodes.append(self.grow(nodes[-1], branch))
        leaf = nodes[-1]
        if leaf.test is None and self.options.leaf_model == "nba":
            self.count_right(nodes, x, label, weight)
        for node in nodes:
            node.learn(x, label, weight)
        self.learned += 1
        leaf_is_due = leaf.test is None and self.is_due(leaf, x, label, weight)
        for node in nodes:
            if node.test is not None and self.options.watched_nodes == "both":
                node.is_beaten = node.imac.observe(x, label, weight)
        happened = []
        for node in nodes:
            if node.test is None or not self.is_revisited(node):
                continue
            change = self.revisit(node)
            if self.options.watched_nodes == "both":
                node.imac.rebuild(self.suggestions)
            if change is not None:
                happened.append(change)
                if change.action != "moved":
                    return happened  # what was below is gone
        if leaf_is_due:
            leaf.at_last_attempt = leaf.observed_weight()
            self.suggestions = []
            split = self.attempt(leaf)
            if leaf.test is None and leaf.imac is not None:
                leaf.imac.rebuild(self.suggestions)
            if split is not None:
                happened.append(split)
        return happened or None

    def grow(self, node, branch):
        super().grow(node, branch)
        node.children[branch] = RevisingNode(self.options, [], node.depth + 1, frozenset())
        return node.children[branch]

    def is_due(self, leaf, x, label, weight):
        """Return whether the schedule wants an attempt: a fixed period, or IMAC's candidates [D39]."""
        if self.options.schedule == "imac":
            leaf.imac = leaf.imac or AnytimeImac(self, leaf)
            return leaf.imac.observe(x, label, weight)
        return leaf.observed_weight() - leaf.at_last_attempt >= self.options.grace_period

    def is_revisited(self, node):
        if self.options.moa:
            return (self.learned - 1) % self.options.revisit == 0
        if self.options.watched_nodes == "both":
            return node.is_beaten
        return node.observed_weight() >= node.revisit_at

    # Decisions

    def attempt(self, leaf):
        if self.is_pure(leaf):
            return None
        leaf.attempts += 1
        self.attempts += 1
        suggestions = self.evaluate(leaf)
        best = self.best(leaf, suggestions)
        bound = self.bound(leaf, len(leaf.distribution) if self.options.moa else self.classes)
        if self.options.moa and best is None:
            if not suggestions or (leaf.null_sum > 0.0 and bound < self.options.tau):
                leaf.forget()
                leaf.used = frozenset()
            return None
        if best is None or best.merit < 1e-10 or best.attribute in leaf.used:
            return None
        lead = self.average(leaf, best.attribute) - leaf.null_sum / leaf.evaluations
        if not (lead > self.options.bound_factor * bound or bound < self.options.tau):
            return None
        return self.install(leaf, best)

    def revisit(self, node):
        """Evaluate an inner node anew; return the revision, or None."""
        node.revisit_at = node.observed_weight() + self.options.revisit
        node.attempts += 1
        self.attempts += 1
        suggestions = self.evaluate(node)
        bound = self.bound(node, node.reach if self.options.moa else self.classes)
        best = self.best(node, suggestions)
        best_average = 0.0 if best is None else self.average(node, best.attribute)
        current = (
            self.average(node, node.test.attribute) if self.options.moa else node.test_sum / node.evaluations
        )
        lead = best_average - current
        tau = self.options.tau
        if not (lead > self.options.bound_factor * bound or (bound < tau and lead > tau / 2.0)):
            return None
        if best is None:
            return None if self.options.moa else self.prune(node)
        same = best.attribute == node.test.attribute
        if same and (self.options.moa or (best.kind, best.value) == (node.test.kind, node.test.value)):
            return None
        if not self.options.moa:
            if best.merit < 1e-10:
                return None
            if same and best.kind == "numeric" == node.test.kind:
                node.test = best
                node.test_sum = node.sums[best.attribute]
                return Revision("moved", best.attribute, best.kind, best.value, node.evidence())
        return self.replace(node, best)

    def evaluate(self, node):
        """Rank all attributes, add their merits to the node's sums; return the suggestions by attribute."""
        node.evaluations += 1
        if self.options.moa and self.options.criterion == "gini":
            node.null_sum += 1.0 - gini(node.distribution)
        suggestions = []
        for attribute in range(len(self.options.attributes)):
            if attribute in node.used and not self.options.moa:
                continue
            suggestion = self.best_test(node, attribute)
            if suggestion is not None:
                suggestions.append(suggestion)
                node.sums[attribute] = node.sums.get(attribute, 0.0) + suggestion.merit
        self.suggestions = suggestions
        if node.test is not None and not self.options.moa:
            merit = self.merit(node, node.observers[node.test.attribute], self.current_branches(node))
            node.test_sum += merit or 0.0  # none if a branch has become too small
        return suggestions

    def current_branches(self, node):
        """Return what the test of an inner node makes of all it has observed."""
        observer = node.observers[node.test.attribute]
        return observer.multiway() if node.test.kind == "multiway" else observer.branches(node.test.value)

    def average(self, node, attribute):
        return node.sums[attribute] / node.evaluations

    def best(self, node, suggestions):
        """Return the suggestion to compare with no split or the test that is there, None: not to split.

        The one with the largest average that is above 0; for MOA that with the largest merit now.
        """
        if self.options.moa:
            last = max(reversed(suggestions), key=java_order) if suggestions else None
            return None if last is None or last.merit < self.null_merit(node) else last
        best, largest = None, 0.0
        for suggestion in suggestions:
            if self.average(node, suggestion.attribute) > largest:
                best, largest = suggestion, self.average(node, suggestion.attribute)
        return best

    def null_merit(self, node):
        """Return MOA's merit of not splitting."""
        return -math.inf if self.options.criterion == "info_gain" else 1.0 - gini(node.distribution)

    # Changes

    def install(self, leaf, best):
        weight = leaf.evidence()
        self.splits += 1
        self.leaves -= 1
        leaf.revisit_at = leaf.observed_weight() + self.options.revisit
        leaf.majority_right = leaf.bayes_right = 0.0
        leaf.imac = None
        self.set_test(leaf, best)
        return Split(best.attribute, best.kind, best.value, weight)

    def replace(self, node, best):
        """Give an inner node another test, and new leaves."""
        weight = node.evidence()
        self.drop_subtree(node)
        self.splits += 1
        if self.options.moa:
            node.used = frozenset()  # it is another object there, which knows nothing of what is above
        self.set_test(node, best)
        return Revision("replaced", best.attribute, best.kind, best.value, weight)

    def prune(self, node):
        """Make an inner node a leaf; it keeps all it has observed, and is due after another grace period."""
        weight = node.evidence()
        self.drop_subtree(node)
        self.leaves += 1
        node.test, node.children = None, []
        node.at_last_attempt = node.observed_weight()
        return Revision("pruned", -1, "null", 0.0, weight)

    def set_test(self, node, best):
        node.test = best
        node.test_sum = node.sums[best.attribute]
        node.reach = len(node.distribution)
        if self.options.moa:
            node.evaluations = 0
            used = node.used | {best.attribute} if best.kind != "numeric" else frozenset()
            node.used = frozenset()  # forgotten when the leaf becomes an inner node
        else:
            used = node.used | {best.attribute} if best.kind != "numeric" else node.used
        node.children = [RevisingNode(self.options, branch, node.depth + 1, used) for branch in best.branches]
        self.leaves += len(node.children)
        if self.options.watched_nodes == "both":
            node.imac = Rivals(self, node)
            node.imac.rebuild(self.suggestions)

    def drop_subtree(self, node):
        """Count off the leaves and inner nodes of a node that is about to lose its subtree."""
        below = [node]
        for one in below:
            below += [child for child in one.children if child is not None]
        self.leaves -= sum(one.test is None for one in below)
        self.splits -= sum(one.test is not None for one in below)
