"""PLASTIC, the obvious way: a new test comes to a node, and what was below the node stays below the test.

Heyden and others 2024. A branch ends at a leaf, at a node that tests the attribute, or after so many nodes.
"""

from tests.naive.efdt import Efdt, RevisingNode
from tests.naive.tree import Suggestion


class Plastic(Efdt):
    """EFDT that rearranges a subtree where EFDT removes it."""

    def revisit(self, node):
        """Evaluate an inner node anew, if it has met two classes: a new node may not have."""
        if self.is_pure(node):
            node.revisit_at = node.observed_weight() + self.options.revisit
            return None
        return super().revisit(node)

    def replace(self, node, best):
        """Give an inner node another test, and what the test makes of the subtrees below it."""
        test, children = node.test, node.children
        revision = super().replace(node, best)
        if self.options.max_branch_length > 1:
            self.drop_subtree(node)
            node.test, node.children = test, children
            below = self.pull(node, best, self.options.max_branch_length)
            node.test = best
            node.children = [self.without_decided_tests(part, best, i) for i, part in enumerate(below)]
            self.splits += 1
            self.settle(node)
            self.count(node)
        return revision

    def pull(self, node, test, length):
        """Return, for each branch of a test, what it holds of a node."""
        own = node.test
        if own is None or length == 1:
            return self.new_leaves(node, test)
        if (own.attribute, own.kind, own.value) == (test.attribute, test.kind, test.value):
            return node.children + self.new_leaves(node, test)[len(node.children) :]
        if own.attribute == test.attribute:
            return self.pull_other(node, test)
        below = [self.pull(child, test, length - 1) for child in node.children]
        return [self.new_node(own, [of_child[i] for of_child in below]) for i in range(len(below[0]))]

    def pull_other(self, node, test):
        """Return the branches of a node that tests the attribute already, but otherwise."""
        own = node.test
        if test.kind == "numeric":
            return node.children
        leaves = self.new_leaves(node, test)
        if test.kind == "multiway":
            leaves[int(own.value)] = node.children[0]
            return leaves
        children = list(node.children)
        if own.kind == "multiway" and test.value < len(children):
            leaves[0] = children[int(test.value)]
            children[int(test.value)] = self.new_leaf([])
        return [leaves[0], self.new_node(own, children)]

    def new_leaf(self, distribution):
        leaf = RevisingNode(self.options, distribution, 0, frozenset())
        leaf.is_new = True
        return leaf

    def new_leaves(self, node, test):
        """Return leaves with the weight that a node has seen in the branches of a test."""
        observer = node.observers[test.attribute] if node.observers else None
        if test.kind == "multiway":
            values = self.options.attributes[test.attribute]
            branches = observer.multiway() if observer else [[]] * values
        else:
            branches = observer.branches(test.value) if observer else [[], []]
        return [self.new_leaf(branch) for branch in branches]

    def new_node(self, test, children):
        """Return a node with a test that has seen nothing itself; all its leaves may be one leaf."""
        longest = max(len(child.distribution) for child in children)
        total = [
            sum(child.distribution[c] for child in children if c < len(child.distribution))
            for c in range(longest)
        ]
        node = RevisingNode(self.options, total, 0, frozenset())
        node.test = Suggestion(0.0, test.attribute, test.kind, test.value)
        node.children = children
        node.revisit_at = self.options.revisit
        node.is_new = True
        return node

    def without_decided_tests(self, node, test, branch):
        """Return a node below a branch of a test, without tests that all records there answer alike."""
        if node.test is None:
            return node
        node.children = [self.without_decided_tests(child, test, branch) for child in node.children]
        if node.test.attribute == test.attribute:
            side = only_side(node.test, test, branch)
            if side is not None and side < len(node.children):
                return node.children[side]
        fresh = node.is_new and all(child.is_new and child.test is None for child in node.children)
        if fresh and sum(weight != 0.0 for weight in node.distribution) < 2:
            return self.new_leaf(node.distribution)
        return node

    def settle(self, node):
        """Write depths, used attributes and routed weight below a node."""
        for child in node.children:
            self.wait_again(child)
            child.depth = node.depth + 1
            child.used = node.used | {node.test.attribute} if node.test.kind != "numeric" else node.used
            self.settle(child)
        if node.is_new and node.test is not None:
            node.routed = sum(child.routed for child in node.children)
        node.is_new = False

    def wait_again(self, node):
        """Let a node that was due by the record on whose way the tree has changed wait for another period."""
        observed = node.observed_weight()
        if node.test is not None:
            if observed >= node.revisit_at:
                node.revisit_at = observed + self.options.revisit
        elif observed - node.at_last_attempt >= self.options.grace_period:
            node.at_last_attempt = observed

    def count(self, node):
        """Count the nodes below a node that has become an inner one."""
        for child in node.children:
            self.leaves += child.test is None
            self.splits += child.test is not None
            self.count(child)


def only_side(own, test, branch):
    """Return the branch that all records take at a test below a branch of a test, None: several."""
    if test.kind == "numeric":
        if branch == 0:
            return 0 if test.value <= own.value else None
        return 1 if own.value <= test.value else None
    values = (
        None if (test.kind, branch) == ("binary", 1) else branch if test.kind == "multiway" else test.value
    )
    if values is None:
        return 1 if (own.kind, own.value) == ("binary", test.value) else None
    return int(values) if own.kind == "multiway" else int(own.value != values)
